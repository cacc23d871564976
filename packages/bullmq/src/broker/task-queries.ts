// Reads tasks for a broker: finds a task by its id, waits for a task to end, lists a queue's tasks by status, and searches its dead
// tasks.
import { isFinal, type Log, type TaskId, type TaskRecord, type TaskStatus } from '@bullpen/contract'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import { decodeInput, MAX_FINGERPRINTS, whyWaiting } from '@bullpen/engine/internal'
import { parseRules, underRules } from '../cancel/by-filter.ts'
import type { QueueKeys } from '../keys.ts'
import { countTasks, readTotals } from '../queries/counts.ts'
import { countByFingerprint, findDead } from '../queries/dead-tasks.ts'
import { readLaneWait } from '../queries/lane-wait.ts'
import { listIds } from '../queries/listing.ts'
import { readTogether } from '../queries/read-together.ts'
import { addStateReads, decodeState, hasLane, type PayloadDecoder, STATE_READS } from '../queries/task-state.ts'
import { readWaitFacts } from '../queries/wait-facts.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { runScript } from '../scripts/script.ts'
import { mayHaveEndedScript } from '../store/scripts.ts'
import { type QueueAccess, type QueueHandles, queueReader } from './queue-handles.ts'

export interface TaskQueriesOptions extends QueueAccess {
  readonly codec: PayloadCodec | undefined
  readonly log: Log
}

/** With the tasks whose kinds of error are counted together. */
const ALL_FINGERPRINTS = MAX_FINGERPRINTS + 1

export function createTaskQueries(
  options: TaskQueriesOptions,
): Pick<
  Broker,
  'find' | 'waitsFor' | 'waitUntilFinished' | 'list' | 'searchDead' | 'countDead' | 'counts' | 'totals' | 'heldRetries'
> {
  const { redis, namespace, queues, call, now, codec, log } = options
  const ofQueue = queueReader(options)

  const warnUnreadable = throttledLog((err: Error, suppressed) => {
    log.warn(
      { err, suppressed },
      'a stored payload cannot be decoded; give this process the same codec as the producers and workers',
    )
  })
  const decode: PayloadDecoder = (input, encoded) => {
    try {
      return decodeInput({ input, encoded }, codec)
    } catch (error) {
      warnUnreadable(error as Error)
      return undefined
    }
  }

  const find: Broker['find'] = async (id) => {
    const home = queues.ofTask(id)
    if (home === undefined) return undefined
    const { keys, name } = home
    const answers = await call(() =>
      readTogether(redis, (reads) => {
        addStateReads(reads, keys, id)
        reads.hvals(keys.cancelRules)
      }),
    )
    const record = decodeState(id, name, answers, decode)
    return record && withTurn(underRules(record, parseRules(answers[STATE_READS])), home.keys, answers)
  }

  /** Adds what a waiting task in a lane waits for, which takes another round trip. */
  async function withTurn(record: TaskRecord, keys: QueueKeys, answers: readonly unknown[]): Promise<TaskRecord> {
    if (record.status !== 'waiting' || !hasLane(answers)) return record
    const waitsFor = await call(() => readLaneWait(redis, keys, record.id))
    return waitsFor === undefined ? record : { ...record, waitsFor }
  }

  /** Reads the tasks of one page. Tasks that have moved on since their ids were read are dropped. */
  const readListed = async (
    { name, keys }: QueueHandles,
    ids: readonly TaskId[],
    status: TaskStatus,
  ): Promise<readonly TaskRecord[]> => {
    const [texts, ...answers] = await call(() =>
      readTogether(redis, (reads) => {
        reads.hvals(keys.cancelRules)
        for (const id of ids) addStateReads(reads, keys, id)
      }),
    )
    const rules = parseRules(texts)
    const tasks = ids.flatMap((id, i) => {
      const record = decodeState(id, name, answers.slice(i * STATE_READS, (i + 1) * STATE_READS), decode)
      return record === undefined ? [] : [underRules(asListed(record, status), rules)]
    })
    // A waiting task that a cancel rule matches is not listed until the bulk canceller has ended it.
    return tasks.filter((task) => task.status === status)
  }

  return {
    find,

    async waitsFor(task) {
      const home = queues.ofTask(task.id)
      if (home === undefined || isFinal(task.status) || task.status === 'active') return undefined
      return whyWaiting(await call(() => readWaitFacts(task, { redis, namespace, keys: home.keys, log })))
    },

    async waitUntilFinished(id, signal) {
      const home = queues.ofTask(id)
      if (home === undefined) return undefined
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const wait = home.completions.wait(id, wake)
      try {
        await call(() => wait.following)
        const keys = { ...home.keys, job: home.keys.job(id) }
        const mayHaveEnded = await call(() => runScript(redis, mayHaveEndedScript, keys, { id }))
        if (mayHaveEnded === 0 && !signal.aborted) await changed.promise
        for (;;) {
          // Created before the read, so that an event during the read is not missed.
          changed = Promise.withResolvers()
          const record = await find(id)
          if (record === undefined || isFinal(record.status) || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        wait.stop()
      }
    },

    async list(query) {
      const home = queues.of(query.queue)
      const { ids, next } = await call(() => listIds(redis, home.keys, query))
      return { tasks: await readListed(home, ids, query.status), next }
    },

    async searchDead(query) {
      const home = queues.of(query.queue)
      const { ids, next } = await call(() => findDead(redis, home.keys, query))
      return { tasks: await readListed(home, ids, 'dead'), next }
    },

    countDead: ofQueue((keys, limit: number = ALL_FINGERPRINTS) => countByFingerprint(redis, keys, limit)),
    counts: ofQueue((keys) => countTasks(redis, keys)),
    totals: ofQueue((keys) => readTotals(redis, keys)),

    heldRetries: ofQueue(async (keys, tasks: readonly string[]) => {
      const counts = await readTogether(redis, (reads) => {
        for (const task of tasks) reads.zcountAbove(keys.heldRetries(task), now())
      })
      return counts.map(Number)
    }),
  }
}

/**
 * Returns the task with the status that it was listed under. A task whose worker was lost has no lock, and is listed and counted
 * as active until it is recovered.
 */
function asListed(task: TaskRecord, listed: TaskStatus): TaskRecord {
  return listed === 'active' && task.status === 'waiting' ? { ...task, status: listed } : task
}
