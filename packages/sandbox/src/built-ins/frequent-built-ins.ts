// Compares the built-in functions that almost all code uses, in a few microseconds.
//
// The comparisons of an object are compiled into one function, in which V8 optimises each read: a loop over the names takes three times
// as long. Getters that nothing replaces are left out.
import { compileFunction } from 'node:vm'
import type { SharedProperty } from './shared-properties.ts'

const { get } = Reflect
const { stringify } = JSON
const { groupBy } = Map

/** A handler's replacement of one of them breaks most other code at once. */
const CLASSES = [
  ...['Object', 'Array', 'Function', 'String', 'Number', 'BigInt', 'Boolean', 'Symbol', 'RegExp', 'Date', 'Promise'],
  ...['Map', 'Set', 'WeakMap', 'Error', 'TypeError', 'RangeError', 'Buffer', 'Uint8Array', 'URL', 'AbortController'],
  ...['AbortSignal', 'Event', 'EventTarget', 'EventEmitter', 'TypedArray'],
  ...['net.Socket', 'stream.Duplex', 'stream.Readable', 'stream.Writable'],
]
const OBJECTS = [
  'JSON',
  'Math',
  'Reflect',
  'process',
  'the prototype of array iterators',
  'the prototype of map iterators',
]
const OTHERS = [
  ...['the prototype of set iterators.next', 'the prototype of string iterators.next', 'performance.now'],
  ...['process', 'performance', 'Buffer', 'console', 'JSON', 'Math', 'Reflect', 'Proxy', 'WeakSet', 'WeakRef', 'fetch'],
  ...['structuredClone', 'queueMicrotask', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  ...['setImmediate', 'clearImmediate', 'parseInt', 'parseFloat'],
]

/** Returns a function that returns whether those of the properties that are used most have their values. */
export function compareFrequent(properties: readonly SharedProperty[]): () => boolean {
  const places = new Set([...CLASSES, ...CLASSES.map((name) => `${name}.prototype`), ...OBJECTS])
  const paths = new Set([...OTHERS, ...CLASSES])
  const frequent = properties.filter(
    (each) => (paths.has(each.path) || places.has(placeOf(each))) && (each.getter === undefined || each.isRead),
  )
  const groups = [...groupBy(frequent, ({ holder }) => holder)].map(([holder, group]) => compare(holder, group))
  return () => {
    try {
      for (let at = 0; at < groups.length; at++) if (!(groups[at] as () => boolean)()) return false
      // A setter for an index of Object.prototype would be inherited.
      return !(0 in Array.prototype || 1 in Array.prototype || 2 in Array.prototype)
    } catch {
      // A getter has replaced a property.
      return false
    }
  }
}

function placeOf({ path, name }: SharedProperty): string {
  const own = typeof name === 'symbol' ? `[${name.description}]` : `.${name}`
  return path.slice(0, -own.length)
}

function compare(holder: object, group: readonly SharedProperty[]): () => boolean {
  const names = group.map(({ name }) => name)
  const values = names.map((name) => get(holder, name))
  const reads = names.map((name, at) => (typeof name === 'string' ? stringify(name) : `names[${at}]`))
  const code = `return () => ${reads.map((name, at) => `holder[${name}] === values[${at}]`).join(' && ')}`
  return compileFunction(code, ['holder', 'names', 'values'])(holder, names, values)
}
