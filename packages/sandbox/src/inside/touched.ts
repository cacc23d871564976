// Notices what a task has changed in its isolate that would change what later tasks do, so that the isolate can be replaced.
//
// Only what is known to be there is compared: a new global, a timer or a socket that a task leaves does not change other code. This takes
// a few microseconds after each task, so it reads properties and never their descriptors, and reads globals by their names.
import { syncBuiltinESMExports } from 'node:module'
import process from 'node:process'

/** Objects whose methods other code relies on. */
const OBJECTS: Readonly<Record<string, object>> = {
  process,
  console,
  JSON,
  Math,
  Reflect,
  Object,
  Array,
  Promise,
  Date,
  'Promise.prototype': Promise.prototype,
  'Date.prototype': Date.prototype,
  'Map.prototype': Map.prototype,
  'Set.prototype': Set.prototype,
  'RegExp.prototype': RegExp.prototype,
  'Object.prototype': Object.prototype,
  'Array.prototype': Array.prototype,
  'String.prototype': String.prototype,
  'Function.prototype': Function.prototype,
}

// A task may replace these methods as well.
const { entries, getOwnPropertyDescriptors, keys } = Object
const { defineProperty, deleteProperty, set } = Reflect
const { stringify } = JSON

interface Method {
  readonly place: string
  readonly holder: Readonly<Record<string, unknown>>
  readonly name: string
  readonly value: unknown
}

export interface TouchedWatch {
  /** Remembers the state of the isolate. */
  remember(): void
  /** Returns the name of something that has changed since, if anything has. */
  find(): string | undefined
}

/** Call this once, before anything reads `process.env`. */
export function watchTouched(): TouchedWatch {
  const environment = watchEnvironment()
  let methods: readonly Method[] = []
  let before: Readonly<Record<string, unknown>> = {}
  return {
    remember() {
      methods = entries(OBJECTS).flatMap(([place, holder]) => methodsOf(place, holder as Method['holder']))
      before = stateNow(environment)
    },
    find() {
      for (const { place, holder, name, value } of methods) if (holder[name] !== value) return `${place}.${name}`
      const now = stateNow(environment)
      for (const name in before) if (now[name] !== before[name]) return name
      return undefined
    },
  }
}

/** Node replaces some of its own getters when they are first read, so getters are left out. */
function methodsOf(place: string, holder: Method['holder']): readonly Method[] {
  return entries(getOwnPropertyDescriptors(holder)).flatMap(([name, { value }]) =>
    typeof value === 'function' ? [{ place, holder, name, value }] : [],
  )
}

/**
 * Returns a function that returns all variables as text. Reading them takes longer than a short task, so they are read again only after
 * one has been written.
 */
function watchEnvironment(): () => string {
  const { env } = process
  let text: string | undefined
  process.env = new Proxy(env, {
    set(_, name, value) {
      text = undefined
      return set(env, name, value)
    },
    deleteProperty(_, name) {
      text = undefined
      return deleteProperty(env, name)
    },
    defineProperty(_, name, descriptor) {
      text = undefined
      return defineProperty(env, name, descriptor)
    },
  })
  syncBuiltinESMExports()
  return () => (text ??= stringify(env))
}

/**
 * Every object inherits from the prototypes, so an enumerable property that a task adds to one of them counts as well. Globals that Node
 * loads when they are first read, such as Request, are left out: loading them would take 100 ms of the start of each isolate.
 */
function stateNow(environment: () => string): Readonly<Record<string, unknown>> {
  const { stdout, stderr } = process
  return {
    process: globalThis.process,
    console,
    JSON,
    Math,
    Reflect,
    Object,
    Array,
    Function,
    Promise,
    Date,
    Map,
    Set,
    RegExp,
    Error,
    Buffer,
    URL,
    AbortController,
    fetch,
    structuredClone,
    queueMicrotask,
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    setImmediate,
    clearImmediate,
    'a property of Object.prototype': keys(Object.prototype).length,
    'a property of Array.prototype': keys(Array.prototype).length,
    'a property of String.prototype': keys(String.prototype).length,
    'a property of Function.prototype': keys(Function.prototype).length,
    'the working directory': process.cwd(),
    'the umask': process.umask(),
    'process.env': process.env,
    'the environment': environment(),
    'the exit code': process.exitCode,
    'process.stdout': stdout,
    'process.stdout.write': stdout.write,
    'the standard output': stdout.writable,
    'process.stderr': stderr,
    'process.stderr.write': stderr.write,
    'the standard error': stderr.writable,
    'the capture of uncaught errors': process.hasUncaughtExceptionCaptureCallback(),
    'the listeners of uncaughtException': process.listenerCount('uncaughtException'),
    'the listeners of unhandledRejection': process.listenerCount('unhandledRejection'),
    'the listeners of message': process.listenerCount('message'),
    'the listeners of disconnect': process.listenerCount('disconnect'),
    'the listeners of SIGTERM': process.listenerCount('SIGTERM'),
    'the listeners of SIGINT': process.listenerCount('SIGINT'),
    'the listeners of SIGHUP': process.listenerCount('SIGHUP'),
  }
}
