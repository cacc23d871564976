// Runs writers that call every API process at once, as fast as tasks are accepted, while some of the processes lose Redis's
// replies.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BullmqBroker } from '@bullpen/bullmq'
import type { ProducerOptions } from '@bullpen/contract'
import type { ApiProcess } from '../environment/api-processes.ts'
import { holdsWithin } from '../holds-within.ts'
import { pick, type Random, shuffled } from '../ledger/random.ts'
import type { Caller } from './caller.ts'
import type { QueueObserver } from './queue-observer.ts'

export interface FloodOptions {
  readonly caller: Caller
  readonly apis: readonly ApiProcess[]
  readonly broker: BullmqBroker
  readonly observer: QueueObserver
  readonly maxTasks: number
  /** How many writers call each process. */
  readonly writers: number
  readonly rounds: number
  /** The number of tasks for which each round makes room. */
  readonly room: number
  readonly random: Random
}

/** A process that got no replies for a while, in ms on the monotonic clock. */
export interface LostReplies {
  readonly api: ApiProcess
  readonly from: number
  readonly to: number
}

/** The writers take these in turn. */
const WHEN_FULL: readonly ProducerOptions[] = [
  { whenFull: 'reject' },
  { whenFull: 'drop' },
  { whenFull: { block: '1s' } },
]
/** The tasks of each writer take these in turn, so that tasks wait in each of the queue's three places. */
const PLACES: readonly ProducerOptions[] = [{}, { delay: '1h' }, { priority: 3 }]

/** How long a writer waits after a task that was not accepted. */
const PAUSE_MS = 50
/** Longer than the API waits for Redis. */
const HOLD_MS = 1_000
/** The longest time between making room and a reset that loses only the replies in transit. */
const RESET_WITHIN_MS = 300
const PENDING_WITHIN_MS = 30_000
/** How long the commands that waited may take to store a task. */
const STORED_WITHIN_MS = 500
/** How often a round is tried. */
const MOST_TRIES = 10
const STATE_WITHIN_MS = 30_000

/** Fills the queue, and makes room again in each round. Returns the faults, one for each round. */
export async function flood(options: FloodOptions): Promise<readonly LostReplies[]> {
  const { caller, apis, observer, maxTasks, writers, rounds } = options
  let isOver = false

  const write = async (api: ApiProcess, writer: number): Promise<void> => {
    for (let n = writer; !isOver; n++) {
      const { outcome } = await caller.call(api, { ...WHEN_FULL[writer % 3], ...PLACES[n % 3] })
      if (outcome.kind !== 'accepted') await sleep(PAUSE_MS)
    }
  }
  const untilFullAndReady = async (): Promise<void> => {
    const isFull = await holdsWithin(STATE_WITHIN_MS, async () => (await observer.size()) >= maxTasks)
    if (!isFull) throw new Error(`the queue was not full within ${STATE_WITHIN_MS} ms`)
    // A process that has lost its connection reconnects.
    const areReady = await Promise.all(apis.map((api) => holdsWithin(STATE_WITHIN_MS, () => isReady(api))))
    if (areReady.includes(false)) throw new Error(`an API was not ready within ${STATE_WITHIN_MS} ms`)
  }

  const writing = Promise.all(apis.flatMap((api) => Array.from({ length: writers }, (_, n) => write(api, n))))
  // A failure is reported when the writers are awaited.
  writing.catch(() => {})
  const faults: LostReplies[] = []
  try {
    for (let n = 0; n < rounds; n++) {
      let fault: LostReplies | undefined
      for (let tries = 0; fault === undefined && tries < MOST_TRIES; tries++) {
        await untilFullAndReady()
        fault = await loseReplies(options)
      }
      if (fault === undefined) throw new Error(`no task was stored in ${MOST_TRIES} tries of a round`)
      faults.push(fault)
    }
    await untilFullAndReady()
  } finally {
    isOver = true
  }
  await writing
  return faults
}

/**
 * Makes room while one process does not get replies, so that Redis stores tasks without this process learning of them. At the same
 * time, another process loses the replies to the commands that it has just sent, and sends these commands again. Returns undefined
 * if the first process has not sent any task, for example because it was reading the queue's settings.
 */
async function loseReplies(options: FloodOptions): Promise<LostReplies | undefined> {
  const { caller, apis, observer, writers, random } = options
  const [held, ...others] = shuffled(apis, random)
  if (held === undefined) throw new Error('there is no API process')
  const from = performance.now()
  const callsBefore = caller.calls.length
  // Otherwise, the other processes could take all of the room. The commands of all writers wait in the proxies.
  for (const { proxy } of apis) proxy.cut()
  await holdsWithin(PENDING_WITHIN_MS, () => apis.every((api) => caller.pendingAt(api) === writers))
  await makeRoom(options)
  const left = await observer.size()
  held.proxy.cutAnswers()
  const isStored = await holdsWithin(STORED_WITHIN_MS, async () => (await observer.size()) > left)
  for (const { proxy } of isStored ? others : apis) proxy.mend()
  if (!isStored) return undefined
  await Promise.all([
    sleep(HOLD_MS),
    (async () => {
      await sleep(random() * RESET_WITHIN_MS)
      const { proxy } = pick(others, random)
      proxy.cutAnswers()
      proxy.reset()
    })(),
  ])
  // Half of the writers have learned nothing. The first of them are those whose commands were waiting.
  await holdsWithin(STATE_WITHIN_MS, () => {
    const ended = caller.calls.slice(callsBefore)
    return ended.filter(({ api, outcome }) => api === held && outcome.kind === 'unknown').length >= writers / 2
  })
  held.proxy.reset()
  return { api: held, from, to: performance.now() }
}

async function isReady(api: ApiProcess): Promise<boolean> {
  const response = await fetch(`${api.url()}/readyz`)
  await response.body?.cancel()
  return response.ok
}

/** Cancels tasks, chosen at random, whether they are waiting or scheduled. */
async function makeRoom({ observer, broker, room, random }: FloodOptions): Promise<void> {
  const chosen = shuffled(await observer.ids(), random).slice(0, room)
  // A cancel without a reply may or may not have made room.
  await Promise.allSettled(chosen.map((id) => broker.cancel(id, { stoppable: true })))
}
