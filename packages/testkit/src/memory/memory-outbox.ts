// Enqueues the follow-up tasks of tasks that have ended, for the memory broker.
import type { FinalStatus } from '@bullpen/contract'
import {
  type Clock,
  COMPENSATION_SLOTS,
  type ForwardedTask,
  forwardedTask,
  HANDLER_SLOT,
  type ReleasedFollowUp,
  releaseDigest,
  releasedBy,
  releasedCompensation,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { StoredTask } from './store/stored-task.ts'

/** How long a forwarded follow-up is remembered, in ms. */
const REMEMBERED_MS = 24 * 3_600_000

export interface MemoryOutboxOptions {
  readonly clock: Clock
  /** Returns whether the store is unreachable. Nothing is forwarded until it is reachable again. */
  readonly isUnreachable: () => boolean
  readonly store: (forwarded: ForwardedTask) => void
}

interface Entry {
  readonly queue: string
  readonly at: number
  readonly released: ReleasedFollowUp
}

export class MemoryOutbox {
  readonly #options: MemoryOutboxOptions
  #entries: readonly Entry[] = []
  /** When each follow-up was forwarded, by its digest. */
  readonly #forwarded = new Map<string, number>()

  constructor(options: MemoryOutboxOptions) {
    this.#options = options
  }

  /** Stores what follows from the end of a task, or from its deletion before its end, and forwards it soon. */
  write(task: StoredTask, status: FinalStatus | 'removed'): void {
    const { followUps, next, compensations, added } = task
    if (status === 'completed') task.compensatedAt = undefined
    if ([followUps, next, compensations, added].every(({ length }) => length === 0)) return
    task.ends++
    const at = this.#options.clock.now()
    const own = status === 'completed' ? [] : compensations.map(({ template }) => template)
    const released = [
      ...(status === 'removed' ? [] : releasedBy(followUps, status)),
      ...added.map(({ template }, i) => ({ slot: `${HANDLER_SLOT}${i + 1}`, template })),
      ...releasedCompensation(next, COMPENSATION_SLOTS.next),
      ...releasedCompensation(own, COMPENSATION_SLOTS.own),
    ]
    const end = { source: task.id, timestamp: task.enqueuedAt, end: task.ends, next: '' }
    this.#entries = [
      ...this.#entries,
      ...released.map((each) => ({ queue: task.queue, at, released: { ...end, ...each } })),
    ]
    if (own.length > 0) task.compensatedAt = at
    task.compensations = []
    task.added = []
    task.next = []
    // A dead task can be retried, and end again.
    if (status !== 'dead') task.followUps = []
    queueMicrotask(() => this.forward())
  }

  /** Forwards everything, unless the store is unreachable. */
  forward(): void {
    if (this.#options.isUnreachable()) return
    const entries = this.#entries
    this.#entries = []
    this.forwardAll(entries.map(({ released }) => released))
  }

  /** Enqueues each of these follow-ups, unless it was enqueued before. */
  forwardAll(releases: readonly ReleasedFollowUp[]): void {
    const now = this.#options.clock.now()
    for (const released of releases) {
      const digest = releaseDigest(released, sha256)
      const key = Buffer.from(digest).toString('hex')
      if ((this.#forwarded.get(key) ?? Number.NEGATIVE_INFINITY) > now - REMEMBERED_MS) continue
      this.#forwarded.set(key, now)
      this.#options.store(forwardedTask(released, digest, now))
    }
  }

  state(queue: string): { readonly entries: number; readonly oldestAt: number | undefined } {
    const own = this.#entries.filter((entry) => entry.queue === queue)
    return { entries: own.length, oldestAt: own[0]?.at }
  }
}
