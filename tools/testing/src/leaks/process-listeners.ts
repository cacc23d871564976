// Tracks listeners on `process`, for signals, uncaught errors and the end of the process.
import { type CallSite, callSite, isOfTestRunner, passesThrough, placeOf } from './call-site.ts'

type Listener = (...args: never[]) => unknown

export interface ProcessListeners {
  /** Returns one line for each listener that was added and not removed, with the place that added it. */
  list(): readonly string[]
  stop(): void
}

/** Compares later listeners with those that exist now. */
export function trackListeners(): ProcessListeners {
  const sites = new WeakMap<Listener, CallSite>()
  const noteListener = (_event: string | symbol, listener: Listener): void => {
    sites.set(listener, callSite(noteListener))
  }
  process.on('newListener', noteListener)
  const before = countListeners()

  return {
    list: () =>
      [...countListeners()].flatMap(([event, counts]) =>
        [...counts].flatMap(([listener, count]) => {
          const site = sites.get(listener)
          const added = count - (before.get(event)?.get(listener) ?? 0)
          if (added <= 0 || (site !== undefined && isAllowed(site))) return []
          const place = site === undefined ? '' : `, added at ${placeOf(site) ?? 'a place of Node itself'}`
          return Array.from({ length: added }, () => `listener of process '${String(event)}'${place}`)
        }),
      ),
    stop: () => void process.off('newListener', noteListener),
  }
}

/**
 * Returns whether the listener is allowed to remain. One of pino's packages adds a listener for all open logs and removes it when
 * the last log is garbage-collected.
 */
function isAllowed(site: CallSite): boolean {
  return isOfTestRunner(site) || passesThrough(site, 'on-exit-leak-free')
}

/** Counts how many times each listener is registered for each event. */
function countListeners(): ReadonlyMap<string | symbol, ReadonlyMap<Listener, number>> {
  return new Map(
    process.eventNames().map((event) => {
      const counts = new Map<Listener, number>()
      for (const listener of process.listeners(event as NodeJS.Signals)) {
        counts.set(listener, (counts.get(listener) ?? 0) + 1)
      }
      return [event, counts]
    }),
  )
}
