// Measures how soon callers that wait for room are released, and in which order.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BullmqBroker } from '@bullpen/bullmq'
import type { ApiProcess } from '../environment/api-processes.ts'
import { holdsWithin } from '../holds-within.ts'
import { type Random, shuffled } from '../ledger/random.ts'
import type { Call, Caller } from './caller.ts'
import type { QueueObserver } from './queue-observer.ts'

export interface RoomOptions {
  readonly caller: Caller
  readonly apis: readonly ApiProcess[]
  readonly broker: BullmqBroker
  readonly queue: string
  readonly observer: QueueObserver
  /** How many callers wait at each process. */
  readonly blocked: number
  readonly random: Random
}

export interface RoomResult {
  /**
   * Time from each request that made room to the response to the next caller whose task was stored, in ms. Infinite if no task was
   * stored in time.
   */
  readonly releasesMs: readonly number[]
  /** The tasks of each process's callers, in the order in which these began to wait. */
  readonly lines: readonly (readonly string[])[]
  /** The waiting tasks, in the order in which they were stored. */
  readonly storedInOrder: readonly string[]
}

const WHEN_FULL = { block: '30s' } as const
const WAITS_WITHIN_MS = 20_000
const RELEASED_WITHIN_MS = 30_000
/** The longest pause between two cancels, so that room comes at any time between two tries of a process. */
const PAUSE_MS = 40
/** The largest number of tasks for which there is room at once. */
const MOST_AT_ONCE = 4

/** Fills the queue, lets callers wait at every process, and then makes room for a few of them at a time. */
export async function measureRoom(options: RoomOptions): Promise<RoomResult> {
  const { caller, apis, broker, observer, random } = options
  for (const api of apis) {
    while ((await caller.call(api, { whenFull: 'reject' })).outcome.kind === 'accepted');
  }
  const toCancel = [...shuffled(await observer.ids(), random)]
  const lines = await Promise.all(apis.map((api) => waitInLine(options, api)))
  const waiting = lines.flat()
  const ended: Call[] = []
  // A failure is reported when the calls are awaited.
  for (const call of waiting) call.then((each) => ended.push(each)).catch(() => {})

  const releasesMs: number[] = []
  while (ended.length < waiting.length) {
    await sleep(random() * PAUSE_MS)
    const before = ended.length
    const leaving = toCancel.splice(0, Math.min(1 + Math.floor(random() * MOST_AT_ONCE), waiting.length - before))
    const askedAt = performance.now()
    await Promise.all(leaving.map((id) => broker.cancel(id, { stoppable: true })))
    const areReleased = await holdsWithin(RELEASED_WITHIN_MS, () => ended.length >= before + leaving.length)
    if (!areReleased) releasesMs.push(Number.POSITIVE_INFINITY)
    releasesMs.push(...ended.slice(before).map(({ endedAt }) => endedAt - askedAt))
  }
  const calls = await Promise.all(lines.map((line) => Promise.all(line)))
  return {
    releasesMs,
    lines: calls.map((line) => line.flatMap(({ outcome }) => (outcome.kind === 'accepted' ? [outcome.id] : []))),
    storedInOrder: await observer.waiting(),
  }
}

/** Starts the callers of one process. Each of them waits for room before the next one comes. */
async function waitInLine({ caller, queue, blocked }: RoomOptions, api: ApiProcess): Promise<readonly Promise<Call>[]> {
  const gauge = new RegExp(`^bullpen_blocked_requests\\{queue="${queue}"\\} (\\d+)$`, 'm')
  const calls: Promise<Call>[] = []
  let ended = 0
  for (let n = 1; n <= blocked; n++) {
    const call = caller.call(api, { whenFull: WHEN_FULL })
    calls.push(call)
    // A failure is reported when the calls are awaited.
    call.then(() => ended++).catch(() => {})
    const waits = await holdsWithin(WAITS_WITHIN_MS, async () => {
      const metrics = await (await fetch(api.metricsUrl() ?? '')).text()
      // On a busy machine, a caller may get no response from Redis in time, and leave the line.
      return Number(gauge.exec(metrics)?.[1]) + ended >= n
    })
    if (!waits) throw new Error(`a caller did not wait for room within ${WAITS_WITHIN_MS} ms`)
  }
  return calls
}
