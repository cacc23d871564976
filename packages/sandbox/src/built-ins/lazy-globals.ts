// Names the globals that Node loads when they are first used, by the module that it then loads. Even a look at the descriptor of such a
// global would load it: Request alone takes 60 ms.

const UNDICI = ['FormData', 'Headers', 'Request', 'Response', 'MessageEvent', 'CloseEvent', 'WebSocket', 'EventSource']
const STREAMS = [
  ...['TransformStream', 'TransformStreamDefaultController', 'WritableStream', 'WritableStreamDefaultController'],
  ...['WritableStreamDefaultWriter', 'ReadableStream', 'ReadableStreamDefaultReader', 'ReadableStreamBYOBReader'],
  ...['ReadableStreamBYOBRequest', 'ReadableByteStreamController', 'ReadableStreamDefaultController'],
]

export const LAZY_GLOBALS: ReadonlyMap<string, readonly string[]> = new Map([
  ['internal/deps/undici/undici', UNDICI],
  ['internal/webstreams/transformstream', STREAMS],
  ['internal/webstreams/queuingstrategies', ['ByteLengthQueuingStrategy', 'CountQueuingStrategy']],
  ['internal/webstreams/encoding', ['TextEncoderStream', 'TextDecoderStream']],
  ['internal/webstreams/compression', ['CompressionStream', 'DecompressionStream']],
  ['internal/file', ['File']],
  ['internal/crypto/webcrypto', ['Crypto', 'CryptoKey', 'SubtleCrypto']],
  ['internal/webstorage', ['Storage', 'localStorage', 'sessionStorage']],
])

/** Node's globals that can be enumerated, as a program's can. All other globals of Node and of the language cannot. */
const ENUMERABLE = [
  ...['clearImmediate', 'setImmediate', 'clearInterval', 'setInterval', 'clearTimeout', 'setTimeout', 'queueMicrotask'],
  ...['structuredClone', 'atob', 'btoa', 'performance', 'fetch', 'crypto', 'navigator'],
]

/** Returns the names of the globals of the language and of Node that are there from the start. */
export function eagerGlobals(): readonly string[] {
  const others = new Set<string | symbol>([
    'globalThis',
    ...Object.keys(globalThis),
    ...[...LAZY_GLOBALS.values()].flat(),
  ])
  for (const name of ENUMERABLE) others.delete(name)
  return Object.getOwnPropertyNames(globalThis).filter((name) => !others.has(name))
}
