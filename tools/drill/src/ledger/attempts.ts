// Finds the attempts in the ledger that were interrupted, signalled or repeated.
import type { Effect } from './effects.ts'
import type { Interruption } from './ledger.ts'

/** Identifies an attempt among those of all tasks. */
export function attemptKey({ id, fencingToken }: Pick<Effect, 'id' | 'fencingToken'>): string {
  return `${id} ${fencingToken}`
}

/** Counts the starts beyond each task's first start. An attempt whose handler never started is not in the ledger. */
export function restartsOf(effects: readonly Effect[]): number {
  const starts = effects.filter(({ what }) => what === 'start')
  return starts.length - countBy(starts).size
}

/** Returns the attempts that a worker had started, but neither ended nor signalled, when it died at `at`. */
export function interruptedBy(effects: readonly Effect[], worker: string, at: number): readonly Interruption[] {
  return openAttempts(effects, worker).map(({ id }) => ({ id, worker, at }))
}

/**
 * Returns the time from `at` to the signal of each attempt that the worker was then running, except for those that ended within
 * `endsMs`.
 */
export function signalsAfter(
  effects: readonly Effect[],
  worker: string,
  at: number,
  endsMs: number,
): readonly number[] {
  const open = openAttempts(
    effects.filter((effect) => effect.at <= at),
    worker,
  )
  return open.flatMap(({ id, fencingToken }) => {
    const later = effects.filter(
      (each) => each.id === id && each.fencingToken === fencingToken && each.worker === worker,
    )
    const signal = later.find(({ what }) => what === 'signal')
    if (signal !== undefined) return [Math.max(0, signal.at - at)]
    const end = later.find(({ what }) => what === 'end')
    return end !== undefined && end.at - at <= endsMs ? [] : [Number.POSITIVE_INFINITY]
  })
}

/** Returns the tasks that a worker ran at any time during this span. */
export function runningWithin(
  effects: readonly Effect[],
  worker: string,
  from: number,
  to: number,
): ReadonlySet<string> {
  const open = openAttempts(
    effects.filter(({ at }) => at < from),
    worker,
  )
  const within = effects.filter((each) => each.worker === worker && each.at >= from && each.at <= to)
  return new Set([...open, ...within].map(({ id }) => id))
}

/** Returns the starts of a worker's attempts that have neither ended nor been signalled. */
export function openAttempts(effects: readonly Effect[], worker: string): readonly Effect[] {
  const open = new Map<string, Effect>()
  for (const effect of effects) {
    if (effect.worker !== worker) continue
    const key = attemptKey(effect)
    if (effect.what === 'start') open.set(key, effect)
    else if (effect.what !== 'stop' && effect.what !== 'pass') open.delete(key)
  }
  return [...open.values()]
}

/** Returns the attempts that ended with a requeue, each with the worker that had started it. */
export function interruptedByRequeue(
  requeues: readonly { readonly id: string; readonly at: number }[],
  effects: readonly Effect[],
): readonly Interruption[] {
  const starts = Map.groupBy(
    effects.filter(({ what }) => what === 'start'),
    ({ id }) => id,
  )
  return requeues.flatMap(({ id, at }) => {
    // A start in the same millisecond belongs to the next attempt, because an attempt that is requeued has run for longer than
    // that.
    const last = starts.get(id)?.findLast((start) => start.at < at)
    return last === undefined ? [] : [{ id, worker: last.worker, at }]
  })
}

/** Returns the time from each interruption to the task's next attempt, in ms. Infinite if there was none. */
export function recoveries(interruptions: readonly Interruption[], starts: readonly Effect[]): readonly number[] {
  const byTask = Map.groupBy(starts, ({ id }) => id)
  return interruptions.map(({ id, worker, at }) => {
    // A worker that is no longer blocked or cut off may run the task again. An attempt that it starts in the same millisecond as the
    // interruption may be the interrupted one.
    const later = (byTask.get(id) ?? []).filter((start) => (start.worker === worker ? start.at > at : start.at >= at))
    return Math.min(...later.map((start) => start.at - at), Number.POSITIVE_INFINITY)
  })
}

/** Returns the number of effects of each task. */
export function countBy(effects: readonly Effect[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { id } of effects) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}
