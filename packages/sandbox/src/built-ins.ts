// Notices which of the functions that all code relies on have been replaced: global ones, and the methods of built-in objects.
//
// This is checked after every task. Only what was there at first is compared: a new global does not change other code. Getters are left
// out, because Node replaces some of its own when they are first read. The comparisons of an object are compiled into one function, in
// which V8 optimises each read: a loop over the names takes three times as long. The methods of arrays may have been replaced as well, so
// no code here calls one after a task.
import { EventEmitter } from 'node:events'
import process from 'node:process'
import { compileFunction } from 'node:vm'

const { ownKeys, get, getOwnPropertyDescriptor, defineProperty, deleteProperty, set } = Reflect
const { entries, getPrototypeOf, keys } = Object
const { stringify } = JSON
const TypedArray = getPrototypeOf(Uint8Array)

const CLASSES = {
  ...{ Object, Array, Function, String, Number, BigInt, Boolean, Symbol, RegExp, Date, Promise, Map, Set, WeakMap },
  ...{ Error, TypeError, RangeError, Buffer, Uint8Array, URL, AbortController, AbortSignal, Event, EventTarget },
}
/** Reading the others would load what Node loads only when it is needed, such as Request, which takes 30 ms. */
const GLOBALS = [
  ...keys(CLASSES),
  ...[
    'process',
    'console',
    'JSON',
    'Math',
    'Reflect',
    'Proxy',
    'WeakSet',
    'WeakRef',
    'fetch',
    'structuredClone',
    'queueMicrotask',
  ],
  ...[
    'setTimeout',
    'clearTimeout',
    'setInterval',
    'clearInterval',
    'setImmediate',
    'clearImmediate',
    'parseInt',
    'parseFloat',
  ],
]
/** What the language looks for in any object. */
const HOOKS = ['then', 'toJSON', Symbol.toPrimitive]
const ERROR_HOOKS = ['prepareStackTrace', 'stackTraceLimit']
interface Watched {
  readonly place: string
  readonly holder: object
  readonly names: readonly (string | symbol)[]
  readonly isSame: () => boolean
  /** In the order of the names. */
  readonly values: unknown[]
  readonly descriptors: (PropertyDescriptor | undefined)[]
}

export interface BuiltIns {
  /** Remembers the built-in functions as they are now. */
  remember(): void
  /** Returns the name of something that has changed since, if anything has. */
  changed(): string | undefined
  /** Undoes all changes, as far as possible, and returns the names. */
  restore(): readonly string[]
}

/** Call this before any code runs that could change something. `more` are other objects whose methods are watched. */
export function watchBuiltIns(more: Readonly<Record<string, object>> = {}): BuiltIns {
  const objects = { JSON, Math, Reflect, 'the prototype of typed arrays': TypedArray.prototype, ...more }
  const watched: readonly Watched[] = [
    watch('', globalThis, GLOBALS),
    watch('process', process, allMethodsOf(process)),
    watch('EventEmitter.prototype', EventEmitter.prototype, methodsOf(EventEmitter.prototype)),
    ...entries(objects).map(([place, holder]) => watch(place, holder, allMethodsOf(holder))),
    ...entries(CLASSES).flatMap(([place, each]) => [
      watch(place, each, [...methodsOf(each), ...(each === Error ? ERROR_HOOKS : [])]),
      watch(`${place}.prototype`, each.prototype, [...methodsOf(each.prototype), ...HOOKS]),
    ]),
  ]

  const undo = ({ holder, names, values, descriptors }: Watched, at: number): void => {
    const name = names[at] as string | symbol
    const descriptor = descriptors[at]
    if (descriptor === undefined) deleteProperty(holder, name)
    else defineProperty(holder, name, descriptor)
    // Node's own setter has replaced what the getter of `process` or `Buffer` returns.
    if (descriptor?.set !== undefined) set(holder, name, values[at])
  }
  /** Returns the names of what has changed. */
  const changes = (visit: (each: Watched, at: number) => void): string[] => {
    const found: string[] = []
    for (let n = 0; n < watched.length; n++) {
      const each = watched[n] as Watched
      if (each.isSame()) continue
      for (let at = 0; at < each.names.length; at++) {
        const name = each.names[at] as string | symbol
        if (get(each.holder, name) === each.values[at]) continue
        found[found.length] = pathOf(each.place, name)
        visit(each, at)
      }
    }
    return found
  }
  return {
    remember() {
      for (const { holder, names, values, descriptors } of watched) {
        names.forEach((name, at) => {
          values[at] = get(holder, name)
          descriptors[at] = getOwnPropertyDescriptor(holder, name)
        })
      }
    },
    changed: () => changes(() => {})[0],
    restore: () => changes(undo),
  }
}

function methodsOf(holder: object): readonly (string | symbol)[] {
  return ownKeys(holder).filter((name) => typeof getOwnPropertyDescriptor(holder, name)?.value === 'function')
}

/** Also returns the inherited ones, which an object's own property may hide. */
function allMethodsOf(holder: object): readonly (string | symbol)[] {
  const parent = getPrototypeOf(holder)
  const inherited = parent === null || parent === Object.prototype ? [] : allMethodsOf(parent)
  return [...new Set([...methodsOf(holder), ...inherited])]
}

function watch(place: string, holder: object, names: readonly (string | symbol)[]): Watched {
  const values: unknown[] = []
  const reads = names.map((name, at) => (typeof name === 'string' ? stringify(name) : `names[${at}]`))
  const code = `return () => ${reads.map((name, at) => `holder[${name}] === values[${at}]`).join(' && ') || 'true'}`
  const isSame = compileFunction(code, ['holder', 'names', 'values'])(holder, names, values)
  return { place, holder, names, isSame, values, descriptors: [] }
}

function pathOf(place: string, name: string | symbol): string {
  if (typeof name === 'symbol') return `${place}[${name.description}]`
  return place === '' ? name : `${place}.${name}`
}
