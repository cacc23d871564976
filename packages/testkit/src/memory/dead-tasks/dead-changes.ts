// Retries and deletes the memory broker's dead tasks by filter, at a limited rate.
import type { Clock, DeadProgress, DeadRequest } from '@bullpen/engine/internal'
import type { MemoryStore } from '../store/memory-store.ts'
import { Timers } from '../store/timers.ts'
import { matchingDead } from './searches.ts'

/** How often tasks are changed, in ms, unless the rate is lower than one task in this time. */
const STEP_MS = 100

interface Running extends DeadProgress {
  changed: number
  doneAt: number | undefined
  stoppedBy?: string
}

export class DeadChanges {
  readonly #clock: Clock
  readonly #requests = new Map<string, Running>()
  readonly #timers: Timers

  constructor(clock: Clock) {
    this.#clock = clock
    this.#timers = new Timers(clock)
  }

  /** Starts to carry out a request. The first tasks are changed at once. */
  start(store: MemoryStore, request: DeadRequest): DeadRequest {
    const running: Running = { request, changed: 0, doneAt: undefined }
    this.#requests.set(request.id, running)
    this.#step(store, running)
    return request
  }

  progressOf(id: string): DeadProgress | undefined {
    const found = this.#requests.get(id)
    return found && { ...found }
  }

  /** Stops a request, unless it is done. Its next step finds that it is done. */
  stop(id: string, by: string): DeadProgress | undefined {
    const found = this.#requests.get(id)
    if (found === undefined) return undefined
    if (found.doneAt === undefined) {
      found.doneAt = this.#clock.now()
      found.stoppedBy = by
    }
    return { ...found }
  }

  /** Returns the requests of a queue, newest first. */
  listed(queue: string, limit: number): readonly DeadProgress[] {
    const all = [...this.#requests.values()].filter(({ request }) => request.filter.queue === queue)
    return all
      .toReversed()
      .slice(0, limit)
      .map((found) => ({ ...found }))
  }

  #step(store: MemoryStore, running: Running): void {
    const { request } = running
    if (running.doneAt !== undefined) return
    const { id, action, by, rate, filter, at, afterCompensation = false } = request
    const endedUntil = Math.min(filter.endedUntil ?? at, at)
    const left = matchingDead(store, { ...filter, endedUntil }).filter(
      ({ retries, compensatedAt }) =>
        (action === 'delete' || afterCompensation || compensatedAt === undefined) &&
        retries.every((each) => each.request !== id && (action === 'delete' || each.copy === undefined)),
    )
    const most = Math.max(1, Math.floor((rate * STEP_MS) / 1_000))
    for (const task of left.slice(0, most)) {
      if (action === 'retry') store.retry(task, { request: id, by, afterCompensation }, task.envelope)
      else store.deleteDead(task)
      running.changed++
    }
    if (left.length <= most) {
      running.doneAt = this.#clock.now()
      return
    }
    this.#timers.after((most * 1_000) / rate, () => this.#step(store, running))
  }

  close(): void {
    this.#timers.close()
  }
}
