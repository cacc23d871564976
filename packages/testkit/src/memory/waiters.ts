// Wakes the callers that wait for a task, a group or a run of the memory broker to end.

export class Waiters<Id> {
  readonly #wakes = new Map<Id, Set<() => void>>()

  /** Lets the callers that wait for this thing look at it again. */
  wake(id: Id): void {
    for (const wake of this.#wakes.get(id) ?? []) wake()
  }

  /** Resolves with what `find` returns once it returns undefined or something that is over, or once the signal aborts. */
  async wait<T>(
    id: Id,
    find: () => T | undefined,
    isOver: (found: T) => boolean,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    let changed = Promise.withResolvers<void>()
    const wake = (): void => changed.resolve()
    const wakes = this.#wakes.get(id) ?? new Set()
    this.#wakes.set(id, wakes.add(wake))
    signal.addEventListener('abort', wake)
    try {
      for (;;) {
        changed = Promise.withResolvers()
        const found = find()
        if (found === undefined || isOver(found) || signal.aborted) return found
        await changed.promise
      }
    } finally {
      signal.removeEventListener('abort', wake)
      wakes.delete(wake)
      if (wakes.size === 0) this.#wakes.delete(id)
    }
  }
}
