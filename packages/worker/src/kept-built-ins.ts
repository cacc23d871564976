// Keeps the built-in functions on which the worker, BullMQ and ioredis rely, whatever an inline handler replaces.
//
// The functions that almost all code uses are compared when an inline handler first gives up control, when it ends, and by a timer. In
// between, the globals that libraries call by name, such as setTimeout, are restored at the end of the microtasks in which a handler has
// replaced them, so that no other callback sees it. The timer compares everything else once a second. The state is global, because a
// process has only one set of built-in functions.
import type { Log, TaskContext } from '@bullpen/contract'
import { watchBuiltIns } from '@bullpen/sandbox/internal'

/** How often the timer compares the functions that almost all code uses, in ms. One comparison takes a few microseconds. */
const INTERVAL_MS = 50
/** Every how many of these comparisons also covers everything else. One such comparison takes about half a millisecond. */
const ALL_EVERY = 20

/** The global functions and objects without which a library fails in a callback of its own, where the error belongs to no attempt. */
const GUARDED = [
  ...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'],
  ...['queueMicrotask', 'JSON', 'console', 'fetch', 'structuredClone'],
]

type Culprit = Pick<TaskContext, 'name' | 'log'>

let kept: Kept | undefined

interface Kept {
  /** Restores everything if something that almost all code uses has changed. */
  restore(culprit?: Culprit): void
  /** Accepts everything as it is before the first handler runs: opening a resource may have changed something. */
  begin(): void
}

/**
 * Keeps the built-in functions as they are now. `onLost` is called once, with the names of what cannot be restored because a handler has
 * made it read-only. Returns a function that ends this.
 */
export function keepBuiltIns(log: Log, onLost: (names: string) => void): () => void {
  const unguard = guardGlobals(restoreBuiltIns)
  const builtIns = watchBuiltIns()
  let isSame: (() => boolean) | undefined
  let isLost = false
  const logged = new Set<string>()
  const report = (names: string, culprit?: Culprit): void => {
    const message = `inline handler has replaced ${names}: restored`
    // A handler that does this in every attempt is logged once.
    const line = `${culprit?.name} ${message}`
    if (logged.has(line)) return
    logged.add(line)
    const { log: to } = culprit ?? { log }
    to.error({}, message)
  }
  const restoreAll = (culprit?: Culprit): void => {
    const { restored, lost } = builtIns.restore()
    // Everything that can be restored is needed while the worker drains.
    if (lost !== undefined && !isLost) {
      isLost = true
      onLost(lost)
    }
    if (isLost) return
    if (restored === undefined) builtIns.grow()
    else report(restored, culprit)
  }
  kept = {
    restore(culprit) {
      if (isSame?.() === false) restoreAll(culprit)
    },
    begin() {
      if (isSame !== undefined) return
      builtIns.remember()
      isSame = builtIns.compareFrequent()
    },
  }
  let ticks = 0
  const timer = setInterval(() => {
    ticks += 1
    if (ticks % ALL_EVERY !== 0) kept?.restore()
    else if (isSame !== undefined) restoreAll()
  }, INTERVAL_MS).unref()
  return () => {
    clearInterval(timer)
    kept = undefined
    unguard()
  }
}

/** Calls `onReplaced` in a microtask after one of the guarded globals was replaced. Returns a function that ends this. */
function guardGlobals(onReplaced: () => void): () => void {
  const afterThis = queueMicrotask
  const unguard = GUARDED.map((name) => {
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, name)
    const original: unknown = Reflect.get(globalThis, name)
    let current = original
    Object.defineProperty(globalThis, name, {
      configurable: true,
      enumerable: descriptor?.enumerable ?? false,
      get: () => current,
      set(next: unknown) {
        current = next
        if (next !== original) afterThis(onReplaced)
      },
    })
    // A handler may have frozen it.
    return () => descriptor && Reflect.defineProperty(globalThis, name, descriptor)
  })
  return () => {
    for (const each of unguard) each()
  }
}

/** Restores the functions, if they are kept. `culprit` is the attempt whose code has run last, if that is known. */
export function restoreBuiltIns(culprit?: Culprit): void {
  kept?.restore(culprit)
}

/**
 * Returns a log that restores the functions before it reports an error. Without a function such as setTimeout, BullMQ repeats its fetch
 * without a pause, so that no timer runs.
 */
export function restoringLog(log: Log): Log {
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error(fields, message) {
      restoreBuiltIns()
      log.error(fields, message)
    },
  }
}

/**
 * Returns a handler's function that restores the built-in functions when it has first given up control, and when it has ended. The handler
 * itself must not be copied, because only a handler that its file exports can run in a child process.
 */
export function restoring<C extends Culprit>(handle: (context: C) => unknown): (context: C) => unknown {
  return (context) => {
    if (kept === undefined) return handle(context)
    kept.begin()
    let returned: unknown
    try {
      returned = handle(context)
    } finally {
      restoreBuiltIns(context)
    }
    return returned instanceof Promise ? restoredAtEnd(returned, context) : returned
  }
}

async function restoredAtEnd<T>(returned: Promise<T>, context: Culprit): Promise<T> {
  try {
    return await returned
  } finally {
    restoreBuiltIns(context)
  }
}
