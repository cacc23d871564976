// Names what a walk over the properties of shared objects would not find, would take for unchanged, or must not compare.
import process from 'node:process'

/** The paths of prototypes that the walk reaches in another way first. */
export const PATHS: ReadonlyMap<object, string> = new Map([
  [Object.prototype, 'Object.prototype'],
  [Function.prototype, 'Function.prototype'],
  [EventTarget.prototype, 'EventTarget.prototype'],
  [Object.getPrototypeOf(Uint8Array.prototype), 'TypedArray.prototype'],
])

/** Accessors outside the global object whose value has to be read. */
export const READ = new Set(['http.globalAgent', 'EventEmitter.defaultMaxListeners'])

/** What changes in ordinary use. */
export const STATE = new Set([
  ...['process.env', 'process.exitCode', 'process.domain', 'process.moduleLoadList', 'process.finalization'],
  ...['process.report', 'process.config', 'process.connected', 'process.channel', 'process.debugPort', 'process.ppid'],
  ...['module._cache', 'module._pathCache', 'module.globalPaths'],
])

/** What Node looks for, and what is usually not there. */
export const ABSENT: readonly (readonly [string, object, readonly string[]])[] = [
  ['Object.prototype', Object.prototype, ['then', 'toJSON']],
  ['Array.prototype', Array.prototype, ['then', 'toJSON']],
  ['Function.prototype', Function.prototype, ['then', 'toJSON']],
  ['Map.prototype', Map.prototype, ['then', 'toJSON']],
  ['Error.prototype', Error.prototype, ['then', 'toJSON']],
  ['Error', Error, ['prepareStackTrace']],
  ['process', process, ['noDeprecation', 'throwDeprecation', 'traceDeprecation']],
]

/** Objects that no property of a global leads to. */
export const HIDDEN: readonly (readonly [string, () => object])[] = [
  ['the prototype of array iterators', () => [].values()],
  ['the prototype of string iterators', () => ''[Symbol.iterator]()],
  ['the prototype of map iterators', () => new Map().values()],
  ['the prototype of set iterators', () => new Set().values()],
  ['the prototype of match iterators', () => ''.matchAll(/x/g)],
  ['the prototype of URLSearchParams iterators', () => new URLSearchParams().values()],
  ['the prototype of generator functions', () => function* () {}],
  ['the prototype of async functions', () => async () => {}],
  ['the prototype of async generator functions', () => async function* () {}],
]
