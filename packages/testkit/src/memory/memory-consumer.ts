// The memory broker's feed: brings a pool its tasks from a shelf, and writes down what is decided about them.
import type { Consumer, ConsumerHost, FetchedTask, RunTask } from '@bullpen/engine/internal'
import type { MemoryStore } from './memory-store.ts'
import type { Outage } from './outage.ts'
import { asJson, type Owner, type StoredTask } from './stored-task.ts'

interface FeedOptions {
  readonly shelf: MemoryStore
  readonly outage: Outage
  readonly concurrency: number
}

/** What the broker may do to a feed. */
export interface Faults {
  /** Its process is gone: it takes nothing and writes nothing any more, and what it had is found again. */
  kill(): void
  /** Its fetching fails for good. */
  break(): void
}

export function memoryFeed(
  { shelf, outage, concurrency }: FeedOptions,
  work: RunTask,
  pool: ConsumerHost,
): Consumer & Faults {
  const taken = new Map<Owner, StoredTask>()
  let limit = concurrency
  let running: PromiseWithResolvers<void> | undefined
  let stopListening = (): void => {}
  let tellEmpty = (): void => {}

  const fetch = (): void => {
    while (running !== undefined && !outage.lasts && taken.size < limit) {
      const owner: Owner = { lockLost: () => {}, cancel: () => {} }
      const task = shelf.take(owner)
      if (task === undefined) return
      owner.lockLost = () => pool.lockLost(task.id)
      owner.cancel = (cause) => void pool.cancel(task.id, cause)
      taken.set(owner, task)
      void handle(task, owner)
    }
  }

  const handle = async (task: StoredTask, owner: Owner): Promise<void> => {
    // A fetch takes time, in which a drain may begin: what it brings is refused.
    await undefined
    let refused = false
    const refuse = (): void => {
      refused = true
      shelf.refuse(task, owner)
    }
    await work(
      takenTask(task, owner, outage),
      async ({ verdict, record }) => {
        await outage.over()
        shelf.obey(task, owner, verdict, record)
      },
      refuse,
    )
    taken.delete(owner)
    if (taken.size === 0) tellEmpty()
    // Who has no worker for this one has none for the next: the shelf tells when to look again.
    if (!refused) fetch()
  }

  const end = (): void => {
    stopListening()
    running?.resolve()
    running = undefined
  }
  const letGo = (): void => {
    end()
    for (const [owner, task] of taken) shelf.orphan(task, owner)
  }

  return {
    notReady: () => (outage.lasts ? 'Redis is not connected' : undefined),
    open: () => outage.over(),
    run() {
      running = Promise.withResolvers()
      stopListening = shelf.onReady(fetch)
      const { promise } = running
      fetch()
      return promise
    },
    resize(workers) {
      limit = workers
      fetch()
    },
    async stop() {
      end()
      if (taken.size > 0) await new Promise<void>((resolve) => (tellEmpty = resolve))
    },
    unconfirmed: () => [...taken.values()].map(({ id, task }) => ({ id, task })),
    close: letGo,
    kill: letGo,
    break() {
      const failed = running
      stopListening()
      running = undefined
      failed?.reject(new Error('the memory broker was told to fail its feeds'))
    },
  }
}

function takenTask(task: StoredTask, owner: Owner, outage: Outage): FetchedTask {
  const { id, envelope, enqueuedAt, delayMs, maxAttempts, fencingToken, attemptsMade } = task
  return {
    id,
    task: task.task,
    // As it would be read: what a handler does to its input changes nothing here.
    envelope: asJson(envelope),
    enqueuedAt,
    fencingToken: fencingToken,
    attempt: attemptsMade + 1,
    maxAttempts,
    readyAt: fencingToken === 1 ? enqueuedAt + delayMs : undefined,
    cancelled: task.cancelRequested,
    async progress(progress) {
      await outage.over()
      task.progress = asJson(progress)
    },
    steps: {
      async read() {
        await outage.over()
        return new Map(task.steps)
      },
      async keep(step, result) {
        await outage.over()
        if (task.owner !== owner) return undefined
        if (!task.steps.has(step)) task.steps.set(step, result)
        return task.steps.get(step)
      },
    },
  }
}
