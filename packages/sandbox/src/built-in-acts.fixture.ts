// Acts of handlers that change what all code shares: iterators, getters, Node's globals and the exports of its modules.
import { EventEmitter } from 'node:events'
import { createRequire, syncBuiltinESMExports } from 'node:module'

const require = createRequire(import.meta.url)
const fails = (message: string) => (): never => {
  throw new Error(message)
}
const iteratorsOf = (value: Iterable<unknown>): { next: unknown } => Object.getPrototypeOf(value[Symbol.iterator]())
function* generator() {
  yield 1
}

export const BUILT_IN_ACTS = {
  'replaces next of array iterators': () => {
    iteratorsOf([]).next = fails('array')
  },
  'replaces next of string iterators': () => {
    iteratorsOf('').next = fails('string')
  },
  'replaces next of map iterators': () => {
    iteratorsOf(new Map()).next = fails('map')
  },
  'replaces next of set iterators': () => {
    iteratorsOf(new Set()).next = fails('set')
  },
  'replaces next of generators': () => {
    Object.getPrototypeOf(Object.getPrototypeOf(generator())).next = fails('generator')
  },
  'replaces a getter of maps': () => {
    Object.defineProperty(Map.prototype, 'size', { get: fails('size') })
  },
  'replaces a getter of typed arrays': () => {
    Object.defineProperty(Object.getPrototypeOf(Uint8Array.prototype), 'length', { get: fails('length') })
  },
  'gives arrays a setter for an index': () => {
    Object.defineProperty(Array.prototype, 0, { set: fails('index'), configurable: true })
  },
  'gives objects a setter for an index': () => {
    Object.defineProperty(Object.prototype, 0, { set: fails('index'), configurable: true })
  },
  'gives objects the get of a descriptor': () => {
    Object.defineProperty(Object.prototype, 'get', { value: fails('get'), configurable: true })
  },
  'makes a method of objects read-only': () => {
    Object.defineProperty(Object.prototype, 'toString', { writable: false })
  },
  'replaces the prototype of functions': () => {
    Object.setPrototypeOf(Function.prototype, { leftBehind: 1 })
  },
  'freezes process.emit': () => {
    Object.defineProperty(process, 'emit', { value: fails('emit') })
  },
  'replaces performance.now': () => {
    performance.now = () => Number.NaN
  },
  'replaces performance': () => {
    globalThis.performance = {} as never
  },
  'replaces crypto.randomUUID': () => {
    crypto.randomUUID = fails('uuid')
  },
  'changes the arguments of the process': () => {
    process.argv.push('--left-behind')
  },
  'changes the title of the process': () => {
    process.title = 'left behind'
  },
  'turns off warnings of deprecated functions': () => {
    process.noDeprecation = true
  },
  'changes the limit of listeners': () => {
    EventEmitter.defaultMaxListeners = 1
  },
  'replaces fs.readFileSync': () => {
    require('node:fs').readFileSync = fails('read')
    syncBuiltinESMExports()
  },
  'replaces a method of a class of Node': () => {
    process.getBuiltinModule('node:stream').Readable.prototype.read = fails('read')
  },
  'loads a module of Node': () => void require('node:readline'),
  'replaces an export of that module': () => {
    require('node:readline').createInterface = fails('readline')
  },
} as const satisfies Readonly<Record<string, () => unknown>>

/** Uses all of the above. */
export function useBuiltIns(): unknown {
  const map = new Map([['a', 1]])
  const list: number[] = []
  list[0] = 1
  Object.defineProperty({}, 'x', { value: 1 })
  return {
    iterated: [...[1], ...'a', ...map, ...new Set([1]), ...generator()].length,
    sizes: [map.size, new Uint8Array(2).length, list.length],
    inherits: 'leftBehind' in fails,
    now: performance.now() > 0,
    uuid: crypto.randomUUID().length,
    argv: process.argv.includes('--left-behind'),
    title: process.title === 'left behind',
    deprecation: process.noDeprecation ?? false,
    listeners: EventEmitter.defaultMaxListeners,
    files: require('node:fs').readFileSync(import.meta.filename).length > 0,
    read: process.getBuiltinModule('node:stream').Readable.from(['x']).read(),
  }
}
