// Keeps the built-in functions on which the worker, BullMQ and ioredis rely, whatever an inline handler replaces.
//
// The functions are compared when an inline handler first gives up control, and when it ends. A timer notices what a handler replaces
// between two awaits. The state is global, because a process has only one set of built-in functions.
import { Socket } from 'node:net'
import { Duplex, Readable, Writable } from 'node:stream'
import type { Catalogue, Handler, Handlers, Log, Resources, TaskContext } from '@bullpen/contract'
import { handlersByName, toHandlers } from '@bullpen/contract/internal'
import { watchBuiltIns } from '@bullpen/sandbox/internal'

/** How often the timer compares the functions, in ms. One comparison takes a few microseconds. */
const INTERVAL_MS = 50

const STREAMS = {
  'Socket.prototype': Socket.prototype,
  'Duplex.prototype': Duplex.prototype,
  'Readable.prototype': Readable.prototype,
  'Writable.prototype': Writable.prototype,
}

type Culprit = Pick<TaskContext, 'name' | 'log'>

let kept: ((culprit?: Culprit) => void) | undefined

/** Keeps the built-in functions as they are now. Returns a function that ends this. */
export function keepBuiltIns(log: Log): () => void {
  const builtIns = watchBuiltIns(STREAMS)
  builtIns.remember()
  const logged = new Set<string>()
  const restore = (culprit?: Culprit): void => {
    const names = builtIns.restore()
    if (names.length === 0) return
    const message = `inline handler has replaced ${names.join(', ')}: restored`
    // A handler that does this in every attempt is logged once.
    const line = `${culprit?.name} ${message}`
    if (logged.has(line)) return
    logged.add(line)
    const { log: to } = culprit ?? { log }
    to.error({}, message)
  }
  kept = restore
  const timer = setInterval(restore, INTERVAL_MS).unref()
  return () => {
    clearInterval(timer)
    kept = undefined
  }
}

/** Restores the functions, if they are kept. `culprit` is the attempt whose code has run last, if that is known. */
export function restoreBuiltIns(culprit?: Culprit): void {
  kept?.(culprit)
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

/** Returns handlers that restore the functions whenever one that runs inline has first given up control, and when it has ended. */
export function restoringAll<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
): Handlers<C, R> {
  const all = Object.entries(handlersByName(handlers)).map(([name, handler]) => [name, handler && restoring(handler)])
  return toHandlers<C, R>(catalogue, Object.fromEntries(all))
}

function restoring(handler: Handler): Handler {
  if (handler.task.isolation !== 'inline' || 'pipeline' in handler) return handler
  const handle: Handler['handle'] = (context) => {
    if (kept === undefined) return handler.handle(context)
    let returned: unknown
    try {
      returned = handler.handle(context)
    } finally {
      kept(context)
    }
    return returned instanceof Promise ? restoredAtEnd(returned, context) : returned
  }
  return { ...handler, handle }
}

async function restoredAtEnd<T>(returned: Promise<T>, context: Culprit): Promise<T> {
  try {
    return await returned
  } finally {
    kept?.(context)
  }
}
