// Opens a broker on which tests run pipelines.
import { randomBytes } from 'node:crypto'
import type { RunId } from '@bullpen/contract'
import { createIncarnation, createRunId, ID_RANDOM_BYTES, readTaskId } from '@bullpen/contract/internal'
import type { Run, RunSettings } from '@bullpen/engine/internal'
import type { OpenBackend } from '../backend.ts'
import { AFTER, gather, long, numbers, openSetup, plain, QUEUE, unlucky } from '../setup.ts'

export interface RunOptions extends Partial<Omit<RunSettings, 'incarnation' | 'source' | 'reduce'>> {
  readonly count: number
  /** The largest size of the results, in bytes. Defaults to 10,000. */
  readonly maxBytes?: number
  /** The queue of the reduction. Defaults to the queue whose tasks are run. */
  readonly reduceIn?: string
}

/** A stage in the queue whose tasks are run. */
export const stage = (concurrency: number, buffer = concurrency) => ({
  task: long.name,
  queue: QUEUE,
  concurrency,
  buffer,
})
/** A stage whose tasks accept every input and output. */
export const any = (concurrency: number, buffer = concurrency) => ({ ...stage(concurrency, buffer), task: plain.name })
/** A stage in a queue whose tasks are never run. */
export const idle = (concurrency: number, buffer = concurrency) => ({
  task: long.name,
  queue: AFTER,
  concurrency,
  buffer,
})

/** A stage whose tasks get batches of this size. */
export const batches = (batch: number, concurrency: number, buffer = concurrency) => ({
  ...any(concurrency, buffer),
  batch,
})

/** Whether the source waits for room. Its task does so for a second or longer, and then ends, which leaves the source `parked`. */
export const isHeldUp = ({ source: { isWaiting, state } }: Run): boolean => isWaiting || state === 'parked'

const newId = (): RunId => createRunId(Date.now(), randomBytes(ID_RANDOM_BYTES))

/** Opens a setup whose stages die with the input 13, and otherwise return their input. */
export async function openRuns(open: OpenBackend, options: Parameters<typeof openSetup>[1] = {}) {
  const setup = await openSetup(open, { locks: 'quick', handle: unlucky, ...options })
  const { runs } = setup.broker
  const start = async ({
    id = newId(),
    count,
    maxBytes = 10_000,
    reduceIn = QUEUE,
    ...more
  }: RunOptions): Promise<RunId> => {
    const incarnation = createIncarnation(randomBytes(ID_RANDOM_BYTES))
    const settings: RunSettings = {
      ...{ id, incarnation },
      ...{ pipeline: 'numbers', by: 'ann', onError: 'cancel', maxErrors: 100, ordered: true, take: undefined },
      ...{ totalMs: 3_600_000, keepMs: 86_400_000, source: { task: numbers.name, queue: QUEUE }, stages: [stage(2)] },
      reduce: { task: gather.name, queue: reduceIn, maxBytes },
      ...more,
    }
    const tasks = [
      setup.create(numbers, { count }),
      ...settings.stages.map(({ task, queue }) => {
        const planned = task === plain.name ? setup.create(plain, {}) : setup.create(long, { n: 0 })
        return { ...planned, input: undefined, queue }
      }),
      { ...setup.create(gather, { count }), queue: reduceIn },
    ]
    await runs.start({ settings, tasks })
    return id
  }
  return {
    ...setup,
    runs,
    startRun: start,
    /** Returns which keys of the run are stored, and how many tasks. Undefined if the broker has no keys. */
    async kept(id: RunId) {
      const keys = await setup.backend.keys?.()
      if (keys === undefined) return undefined
      const below = keys.map((key) => key.slice(key.lastIndexOf('}:') + 2))
      return {
        ofRun: below.filter((_, i) => keys[i]?.includes(`${id}}`)).toSorted(),
        tasks: below.filter((name) => readTaskId(name.slice(name.indexOf(':') + 1)) !== undefined).length,
      }
    },
    async ended(id: RunId): Promise<Run> {
      const run = await runs.waitUntilEnded(id, AbortSignal.timeout(120_000))
      if (run?.state !== 'ended') throw new Error(`run ${id} has not ended: ${JSON.stringify(run)}`)
      return run
    },
  }
}
