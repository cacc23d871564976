// A worker whose inline handler does what a handler should not do. Each act says how its attempt ends.
import { EventEmitter } from 'node:events'
import { connect, createServer, Socket } from 'node:net'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask, type EndReason } from '@bullpen/contract'
import { z } from 'zod'
import { createWorker, runUntilSignalled } from './index.ts'

const never = () => new Promise<never>(() => {})
const fails = (message: string): never => {
  throw new Error(message)
}
const throws = (value: unknown) => (): never => {
  throw value
}
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
function cyclic(): Error {
  const inner = new Error('inner')
  const outer = new Error('outer', { cause: inner })
  inner.cause = outer
  return new AggregateError([outer, inner], 'cyclic', { cause: outer })
}
const inTimer = (code: () => unknown) => () => {
  setTimeout(code, 1)
  return never()
}

const FROZEN = { writable: false, configurable: false }
const TIMERS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate']

interface Act {
  readonly does: (context: { readonly signal: AbortSignal }) => unknown
  /** Undefined if the task is completed. */
  readonly endsAs?: EndReason
  /** The timeout of the task, if the act does not end otherwise. */
  readonly timeout?: '200ms'
}

const ENDS: Readonly<Record<string, Act>> = {
  'sends SIGTERM': { does: () => process.kill(process.pid), endsAs: 'escaped_error' },
  'sends SIGINT by its number': { does: () => process.kill(process.pid, 2), endsAs: 'escaped_error' },
  'sends SIGHUP to its group': { does: () => process.kill(0, 'SIGHUP'), endsAs: 'escaped_error' },
  'calls process.exit': { does: () => process.exit(3), endsAs: 'escaped_error' },
  'calls process.exit in a timer': { does: inTimer(() => process.exit(0)), endsAs: 'escaped_error' },
  'calls process.exit and catches its error': {
    does() {
      try {
        process.exit(3)
      } catch {}
    },
    endsAs: 'escaped_error',
  },
  'emits an uncaught exception': {
    does: () => process.emit('uncaughtException' as never, new Error('emitted') as never),
    endsAs: 'escaped_error',
  },
  'throws a revoked proxy in a timer': { does: inTimer(throws(revoked())), endsAs: 'escaped_error' },
  'rejects with undefined': { does: inTimer(() => void Promise.reject()), endsAs: 'escaped_error' },
}

const PANICS: Readonly<Record<string, Act['does']>> = {
  'throws undefined': throws(undefined),
  'throws null': throws(null),
  'throws a symbol': throws(Symbol('thrown')),
  'throws a function': throws(fails),
  'throws an object without a prototype': throws(Object.create(null)),
  'throws a revoked proxy': throws(revoked()),
  'throws an error with an unreadable message': throws(
    Object.defineProperty(new Error(), 'message', { get: () => fails('message') }),
  ),
  'throws an error with an unreadable name and stack': throws(
    Object.defineProperties(new Error('text'), {
      name: { get: () => fails('name') },
      stack: { get: () => fails('stack') },
    }),
  ),
  'throws an error with an unreadable code': throws(
    Object.defineProperty(new Error('text'), 'code', { enumerable: true, get: () => fails('code') }),
  ),
  'throws a proxy of an error': throws(new Proxy(new Error('text'), { get: () => fails('get') })),
  'throws an error with a message of 20 MB': () => fails('m'.repeat(20_000_000)),
  'throws an error with cyclic causes': () => throws(cyclic())(),
  'throws an error with a chain of 10,000 causes': () => {
    let error = new Error('first')
    for (let n = 0; n < 10_000; n++) error = new Error(`${n}`, { cause: error })
    throw error
  },
  'returns a thenable that throws': () => Object.defineProperty({}, 'then', { get: () => fails('then') }),
  'returns a revoked proxy': revoked,
}

const INVALID: Readonly<Record<string, Act['does']>> = {
  'returns a value with a getter that throws': () => ({
    deep: {
      get value() {
        return fails('getter')
      },
    },
  }),
  'returns a value whose toJSON throws': () => ({ toJSON: () => fails('toJSON') }),
  'returns a value nested 100,000 deep': () => {
    let value = {}
    for (let level = 0; level < 100_000; level++) value = { value }
    return value
  },
  'returns a value that contains itself': () => {
    const value: Record<string, unknown> = {}
    value['self'] = value
    return value
  },
}

const COMPLETES: Readonly<Record<string, Act['does']>> = {
  'removes the listeners of uncaught errors': () => void process.removeAllListeners('uncaughtException'),
  'removes the listeners of SIGTERM': () => void process.removeAllListeners('SIGTERM'),
  'removes all listeners': () => void process.removeAllListeners(),
  'leaves a timer that throws': () => void setTimeout(() => fails('late'), 20),
  'leaves a promise that rejects': () => void sleep(20).then(() => fails('late')),
  'leaves a timer that exits': () => void setTimeout(() => process.exit(3), 20),
  'returns an async iterator': async function* () {
    yield 1
  },
  'leaves an interval': () => void setInterval(() => {}, 5),
  'leaves a server and a socket that fail': () => {
    const server = createServer((socket) => socket.destroy()).listen(0, () => {
      connect((server.address() as { port: number }).port).end('x')
    })
    connect(1)
  },
  'leaves a listener on its signal': ({ signal }) => signal.addEventListener('abort', () => fails('abort')),
  'sets the exit code': () => {
    process.exitCode = 3
  },
  'removes setTimeout': () => {
    globalThis.setTimeout = undefined as never
  },
  'removes setTimeout while it runs': async () => {
    await sleep(1)
    globalThis.setTimeout = undefined as never
    await new Promise(process.nextTick)
    // As soon as the microtasks have ended, every callback has it again.
    setTimeout(() => {}, 1)
  },
  'replaces all timers': () => {
    for (const name of TIMERS) Reflect.set(globalThis, name, () => fails(name))
  },
  'replaces JSON': () => {
    JSON.stringify = () => fails('stringify')
    JSON.parse = () => fails('parse')
    globalThis.JSON = undefined as never
  },
  'replaces global objects': () => {
    for (const name of ['Promise', 'Error', 'Map', 'Date', 'Buffer', 'process']) Reflect.set(globalThis, name, null)
  },
  'replaces the iterator of arrays': () => {
    Array.prototype[Symbol.iterator] = () => fails('iterator')
  },
  'replaces next of all iterators': () => {
    for (const each of [[], '', new Map(), new Set()])
      Object.getPrototypeOf(each[Symbol.iterator]()).next = () => fails('next')
  },
  'gives arrays a setter for an index': () => {
    Object.defineProperty(Array.prototype, 0, { set: () => fails('index'), configurable: true })
  },
  'gives objects a setter for an index': () => {
    Object.defineProperty(Object.prototype, 1, { set: () => fails('index'), configurable: true })
  },
  'gives objects the get of a descriptor': () => {
    Object.defineProperty(Object.prototype, 'get', { value: () => fails('get'), configurable: true })
  },
  'replaces performance.now by one that returns NaN': () => {
    performance.now = () => Number.NaN
  },
  'replaces performance.now by one that throws': () => {
    performance.now = () => fails('now')
  },
  'replaces a getter of maps': () => {
    Object.defineProperty(Map.prototype, 'size', { get: () => 0 })
  },
  'replaces methods of arrays': () => {
    for (const name of ['map', 'push', 'shift', 'filter']) Reflect.set(Array.prototype, name, () => fails(name))
  },
  'replaces methods of promises': () => {
    for (const name of ['then', 'finally']) Reflect.set(Promise.prototype, name, () => fails(name))
  },
  'replaces Map.prototype.get': () => {
    Map.prototype.get = () => fails('get')
  },
  'replaces Date.now': () => {
    Date.now = () => 0
  },
  'replaces structuredClone and queueMicrotask': () => {
    for (const name of ['structuredClone', 'queueMicrotask']) Reflect.set(globalThis, name, () => fails(name))
  },
  'replaces process.nextTick': () => {
    process.nextTick = () => fails('tick')
  },
  'shadows process.emit': () => {
    process.emit = () => fails('emit')
  },
  'replaces EventEmitter.prototype.emit': () => {
    EventEmitter.prototype.emit = () => fails('emit')
  },
  'replaces the writes of sockets': () => {
    Socket.prototype.write = () => fails('write')
    Writable.prototype.write = () => fails('write')
  },
  'prepares stack traces': () => {
    Error.prepareStackTrace = () => fails('stack')
  },
  'gives all objects a then': () => {
    Object.defineProperty(Object.prototype, 'then', { value: () => fails('then'), configurable: true })
  },
  'changes the directory': () => process.chdir('/'),
  'removes all variables': () => {
    for (const name of Object.keys(process.env)) delete process.env[name]
  },
  'freezes its globals': () => {
    for (const each of [globalThis, Array.prototype, Promise.prototype]) Object.preventExtensions(each)
  },
  'ends its standard streams': () => {
    process.stdin.destroy()
    process.stdout.end()
    process.stderr.destroy()
  },
}

function all(acts: typeof PANICS, endsAs?: EndReason): Readonly<Record<string, Act>> {
  return Object.fromEntries(Object.entries(acts).map(([name, does]) => [name, { does, ...(endsAs && { endsAs }) }]))
}

/** Each of them makes its replacement read-only, so that it cannot be restored. */
const LOST: Readonly<Record<string, () => unknown>> = {
  'Map.prototype.get': () => Object.defineProperty(Map.prototype, 'get', { value: () => fails('get'), ...FROZEN }),
  'JSON.stringify': () => Object.defineProperty(JSON, 'stringify', { value: () => fails('stringify'), ...FROZEN }),
  'Promise.prototype.then': () =>
    Object.defineProperty(Promise.prototype, 'then', { value: () => fails('then'), ...FROZEN }),
  setTimeout: () => Object.defineProperty(globalThis, 'setTimeout', { value: () => fails('timeout'), ...FROZEN }),
  'setTimeout and Promise.prototype.then by functions that do nothing': () => {
    // The drain waits forever, and no error ends the worker.
    Object.defineProperty(Promise.prototype, 'then', { value: never, ...FROZEN })
    Object.defineProperty(globalThis, 'setTimeout', { value: () => 0, ...FROZEN })
  },
  'next of arrays': () =>
    Object.defineProperty(Object.getPrototypeOf([].values()), 'next', { value: () => fails('next'), ...FROZEN }),
  'an index of arrays': () => Object.defineProperty(Array.prototype, 0, { set: () => fails('index') }),
  'process.emit': () => Object.defineProperty(process, 'emit', { value: () => fails('emit'), ...FROZEN }),
  'a getter of maps': () => Object.defineProperty(Map.prototype, 'size', { get: () => 0, configurable: false }),
}
export const LOST_NAMES = Object.keys(LOST)
/** Whether the worker drains before it exits, where that is certain. */
export const DRAINS: Readonly<Record<string, boolean>> = {
  'a getter of maps': true,
  'process.emit': false,
}

export const ACTS: Readonly<Record<string, Act>> = {
  ...ENDS,
  ...all(PANICS, 'unexpected_error'),
  ...all(INVALID, 'invalid_output'),
  // biome-ignore lint/suspicious/noThenProperty: it is what the act is about
  'returns a thenable that never settles': { does: () => ({ then() {} }), endsAs: 'run_timeout', timeout: '200ms' },
  ...all(COMPLETES),
}

const limits = { queue: 'acts', timeout: '1m', grace: '50ms', retry: { maxAttempts: 1 } } as const
export const actTask = defineTask({ name: 'acts.do', ...limits, input: z.string(), output: z.unknown() })
export const checkTask = defineTask({ name: 'acts.check', ...limits, input: z.null(), output: z.string() })
export const actTasks = defineCatalogue(actTask, checkTask)

if (process.argv[1] === import.meta.filename) {
  const [redisUrl, namespace] = process.argv.slice(2)
  const config = {
    redisUrl,
    namespace,
    port: 0,
    pools: { acts: 2 },
    drainTimeout: '500ms',
    terminationGrace: '2h',
  } as const
  const handlers = {
    'acts.do': defineHandler(actTask, import.meta.url, (context) =>
      ACTS[context.input] === undefined ? LOST[context.input]?.() : ACTS[context.input]?.does(context),
    ),
    'acts.check': defineHandler(checkTask, import.meta.url, ({ log }) => {
      log.info('checking')
      console.log('checking')
      return 'checked'
    }),
  }
  process.exit(await runUntilSignalled(createWorker({ catalogue: actTasks, handlers, config })))
}
