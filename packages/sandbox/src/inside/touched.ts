// Notices what a task has changed in its isolate that would change what later tasks do, so that the isolate can be replaced.
//
// Only what is known to be there is compared: a new global, a timer or a socket that a task leaves does not change other code.

/** The objects whose methods other code relies on. New properties count only in the prototypes, which every object inherits from. */
const OBJECTS: Readonly<Record<string, object>> = {
  globalThis,
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
}
const PROTOTYPES: Readonly<Record<string, object>> = {
  'Object.prototype': Object.prototype,
  'Array.prototype': Array.prototype,
  'String.prototype': String.prototype,
  'Function.prototype': Function.prototype,
}

/** The events of the process to which the isolate listens. */
const EVENTS = ['uncaughtException', 'unhandledRejection', 'message', 'disconnect', 'SIGTERM', 'SIGINT', 'SIGHUP']

// A task may replace these methods as well.
const { getOwnPropertyDescriptors, keys, is } = Object
const { ownKeys } = Reflect

type Data = readonly (readonly [place: string, holder: object, name: string, value: unknown])[]

/** Remembers the state of the isolate. Returns a function that returns the name of something that has changed since, if anything has. */
export function watchTouched(): () => string | undefined {
  const data = dataOf({ ...OBJECTS, ...PROTOTYPES })
  const before = { ...sizesOf(), ...stateOf() }
  return () => {
    for (const [place, holder, name, value] of data) {
      if (!is(Reflect.getOwnPropertyDescriptor(holder, name)?.value, value)) return `${place}.${name}`
    }
    const now = { ...sizesOf(), ...stateOf() }
    return keys(now).find((name) => now[name] !== before[name])
  }
}

/** Returns the functions of the objects. Node replaces some of its own getters when they are first read, so getters are left out. */
function dataOf(objects: Readonly<Record<string, object>>): Data {
  return Object.entries(objects).flatMap(([place, holder]) =>
    Object.entries(getOwnPropertyDescriptors(holder)).flatMap(([name, { value }]) =>
      typeof value === 'function' ? [[place, holder, name, value] as const] : [],
    ),
  )
}

function sizesOf(): Record<string, unknown> {
  return Object.fromEntries(Object.entries(PROTOTYPES).map(([place, holder]) => [place, ownKeys(holder).length]))
}

function stateOf(): Record<string, unknown> {
  const listeners = EVENTS.map((event) => [`the listeners of ${event}`, process.listenerCount(event)] as const)
  return {
    'the working directory': process.cwd(),
    'the umask': process.umask(),
    'the environment': JSON.stringify(process.env),
    'the exit code': process.exitCode,
    'the standard output': process.stdout.writable,
    'the standard error': process.stderr.writable,
    ...Object.fromEntries(listeners),
  }
}
