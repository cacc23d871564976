// Implements the memory broker's consumer, which fetches tasks for a pool and commits the verdicts on them.
import {
  type Envelope,
  encodeLines,
  MAX_FOLLOW_UP_BYTES,
  MAX_FOLLOW_UPS,
  parseTemplate,
  type StoredTemplate,
} from '@bullpen/contract/internal'
import {
  type AttemptEvents,
  type Consumer,
  type ConsumerHost,
  decodeStep,
  encodeStep,
  type FetchedTask,
  keeperOf,
  type RunTask,
  type TaskQuarantine,
  type WaitPool,
  withKeptInput,
} from '@bullpen/engine/internal'
import type { MemoryConsumerOptions } from './memory-broker-options.ts'
import type { Outage } from './outage.ts'
import type { MemoryStore } from './store/memory-store.ts'
import { asJson, type Owner, type StoredTask } from './store/stored-task.ts'

export interface MemoryConsumerSettings extends Omit<MemoryConsumerOptions, 'queue' | 'worker'> {
  readonly store: MemoryStore
  readonly outage: Outage
  readonly worker: string
  /** Returns the input that a pipeline run keeps for a task. */
  readonly inputOf: (place: NonNullable<Envelope['run']>) => string | undefined
  /** Called when the consumer no longer fetches tasks. */
  readonly onStopped: () => void
}

/** A consumer that can be made to fail. */
export interface MemoryConsumer extends Consumer {
  /** Returns the state of the consumer's pool as a worker reports it, or undefined if the consumer does not fetch tasks. */
  pool(): WaitPool | undefined
  /** Simulates the death of the worker: the consumer no longer fetches or commits anything, and its tasks are recovered. */
  kill(): void
  /** Makes fetching fail until the pool restarts the consumer. */
  fail(): void
}

export function createMemoryConsumer(
  {
    store,
    outage,
    concurrency,
    worker,
    candidates,
    keyLimits,
    capacities = {},
    inputOf,
    onStopped,
  }: MemoryConsumerSettings,
  run: RunTask,
  pool: ConsumerHost,
): MemoryConsumer {
  const fetched = new Map<Owner, StoredTask>()
  let limit = concurrency
  let running: PromiseWithResolvers<void> | undefined
  let stopListening = (): void => {}
  let onEmpty = (): void => {}
  let isClosed = false
  let isPausing = false

  /** Fetches again when it is time to. */
  const fetchLater = async (): Promise<void> => {
    if (candidates === undefined || isPausing) return
    isPausing = true
    const goesOn = await candidates.noneWaits()
    isPausing = false
    if (goesOn) fetch()
  }

  const envelopeOf = ({ envelope }: StoredTask): unknown => {
    const place = keeperOf(envelope)
    // The handler gets a copy, so that changing its input does not change the stored task.
    return withKeptInput(asJson(envelope), place && inputOf(place))
  }

  const fetch = (): void => {
    while (running !== undefined && !outage.lasts && fetched.size < limit) {
      const only = candidates?.next()
      const poisoned = store.endPoisoned(only)
      if (poisoned !== undefined) {
        pool.endedAsDead(poisoned, 'process_lost')
        continue
      }
      const owner: Owner = { worker, lockLost: () => {}, cancel: () => {} }
      const task = store.take(owner, only)
      if (task === undefined) {
        void fetchLater()
        return
      }
      candidates?.fetched(task.id)
      owner.lockLost = () => pool.lockLost(task.id)
      owner.cancel = (cause) => void pool.cancel(task.id, cause)
      fetched.set(owner, task)
      void handle(task, owner)
    }
  }

  const handle = async (task: StoredTask, owner: Owner): Promise<void> => {
    // Fetching takes time in a real broker, too. If a drain begins in the meantime, the pool releases the task.
    await undefined
    let released = false
    const release = async (delayMs?: number): Promise<void> => {
      // If there is no free slot for this task, there is none for the next one either. The store wakes the consumer later.
      released = delayMs === undefined
      await outage.over()
      // The reply does not reach a consumer that was closed or killed.
      if (!isClosed && store.release(task, owner, delayMs)) pool.released(task.id)
    }
    await run(
      { ...fetchedTask(task, owner, outage, store.eventsOf(task, owner)), envelope: envelopeOf(task) },
      async (result) => {
        await outage.over()
        // The reply does not reach a consumer that was closed or killed.
        if (isClosed) return
        pool.settled(result, store.commit(task, owner, result))
      },
      release,
    )
    fetched.delete(owner)
    candidates?.returned(task.id)
    if (fetched.size === 0) onEmpty()
    if (!released) fetch()
  }

  const end = (): void => {
    candidates?.stop()
    stopListening()
    if (running !== undefined) onStopped()
    running?.resolve()
    running = undefined
  }
  const abandon = (): void => {
    isClosed = true
    end()
    for (const [owner, task] of fetched) store.orphan(task, owner)
  }

  return {
    pool() {
      if (running === undefined) return undefined
      const state = candidates === undefined ? 'BG_RUNNING' : 'ONLINE_RUNNING'
      return { state, paused: false, concurrency: limit, busy: fetched.size, notReady: undefined }
    },
    notReady: () => (outage.lasts ? 'Redis is not connected' : undefined),
    async open() {
      await outage.over()
      store.places.defineLimits(keyLimits, capacities)
    },
    run() {
      running = Promise.withResolvers()
      stopListening = store.places.onReady(fetch)
      const { promise } = running
      fetch()
      return promise
    },
    resize(slots) {
      limit = slots
      fetch()
    },
    async stop() {
      end()
      if (fetched.size > 0) await new Promise<void>((resolve) => (onEmpty = resolve))
    },
    unconfirmed: () => [...fetched.values()].map(({ id, task }) => ({ id, task })),
    close: abandon,
    kill: abandon,
    fail() {
      const failed = running
      stopListening()
      running = undefined
      failed?.reject(new Error('fetching failed: failConsumers() was called'))
    },
  }
}

function quarantineOf(task: StoredTask, owner: Owner, outage: Outage): TaskQuarantine {
  return {
    deaths: task.deaths,
    async startAlone() {
      await outage.over()
      if (task.owner !== owner) return false
      task.alone = task.fencingToken
      return true
    },
  }
}

function storedTemplate(text: string): StoredTemplate {
  const template = parseTemplate(text)
  if (template === undefined) throw new Error(`not a template: ${text}`)
  return template
}

/** Returns the list with `own` in place of the element that is the same, or else at the end. */
function withOwn<T>(all: readonly T[], own: T, isSame: (each: T) => boolean): readonly T[] {
  return all.some(isSame) ? all.map((each) => (isSame(each) ? own : each)) : [...all, own]
}

function isTooMuch(count: number, text: string): boolean {
  return count > MAX_FOLLOW_UPS || Buffer.byteLength(text) > MAX_FOLLOW_UP_BYTES
}

function fetchedTask(
  task: StoredTask,
  owner: Owner,
  outage: Outage,
  events: AttemptEvents | undefined,
): Omit<FetchedTask, 'envelope'> {
  const { id, codec, enqueuedAt, delayMs, maxAttempts, fencingToken, attemptsMade } = task
  return {
    id,
    task: task.task,
    codec,
    enqueuedAt,
    fencingToken,
    attempt: attemptsMade + 1,
    maxAttempts,
    readyAt: fencingToken === 1 ? enqueuedAt + delayMs : undefined,
    cancelled: task.cancelRequested,
    quarantine: task.deaths === 0 ? undefined : quarantineOf(task, owner, outage),
    events,
    async progress(progress) {
      await outage.over()
      task.progress = asJson(progress)
    },
    steps: {
      async read() {
        await outage.over()
        return new Map(Array.from(task.steps, ([step, stored]) => [step, decodeStep(stored, codec)]))
      },
      async keep(step, result) {
        await outage.over()
        if (task.owner !== owner) return undefined
        const stored = task.steps.get(step) ?? encodeStep(result, codec)
        task.steps.set(step, stored)
        return decodeStep(stored, codec)
      },
      async register(kind, identity, text) {
        await outage.over()
        if (task.owner !== owner) return 'lock_lost'
        const template = storedTemplate(text)
        if (kind === 'compensation') {
          const all = withOwn(task.compensations, { identity, template }, (each) => each.identity === identity)
          if (isTooMuch(all.length, all.map((each) => `${identity} ${JSON.stringify(each.template)}`).join('')))
            return 'full'
          task.compensations = all
        } else {
          const own = { on: kind, identity, template }
          const all = withOwn(task.followUps, own, (each) => each.on === kind && each.identity === identity)
          if (isTooMuch(all.length, encodeLines(all))) return 'full'
          task.followUps = all
        }
        return 'stored'
      },
    },
  }
}
