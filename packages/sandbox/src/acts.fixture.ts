// Handlers that do to their process and its globals what a handler should not do, and one that shows whether that changed anything.
import { EventEmitter } from 'node:events'
import { closeSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { BUILT_IN_ACTS, useBuiltIns } from './built-in-acts.fixture.ts'

const never = () => new Promise<never>(() => {})
const fails = (message: string) => (): never => {
  throw new Error(message)
}

/** Each act, and how its attempt ends in a thread and in a process. The isolate is always replaced if it is `touched`. */
export const ACTS = {
  ...BUILT_IN_ACTS,
  'kills itself with SIGTERM': () => process.kill(process.pid, 'SIGTERM'),
  'kills itself with SIGKILL': () => process.kill(process.pid, 'SIGKILL'),
  aborts: () => process.abort(),
  'changes the directory': () => process.chdir('/'),
  'removes its directory': () => {
    const directory = mkdtempSync(join(tmpdir(), 'act-'))
    process.chdir(directory)
    rmdirSync(directory)
  },
  'changes the umask': () => process.umask(0),
  'sets the exit code': () => {
    process.exitCode = 3
  },
  'changes the environment': () => {
    process.env['LEFT_BEHIND'] = '1'
  },
  'changes the environment that it imports': () => {
    env['LEFT_BEHIND'] = '1'
  },
  'removes a variable': () => {
    delete process.env['PATH']
  },
  'ends its standard streams': () => {
    process.stdin.destroy()
    process.stdout.end()
    process.stderr.end()
  },
  'destroys its standard streams': () => {
    process.stdin.destroy()
    process.stdout.destroy()
    process.stderr.destroy()
  },
  'replaces the methods of its standard streams': () => {
    process.stdout.write = fails('stdout')
    process.stderr.write = fails('stderr')
  },
  'replaces its standard streams': () => {
    Object.defineProperty(process, 'stdout', { value: null })
    Object.defineProperty(process, 'stderr', { value: null })
  },
  'replaces the global objects': () => {
    Object.assign(globalThis, { console: null, JSON: null, Math: null, process: null })
  },
  'removes the listeners of uncaught errors': () => process.removeAllListeners('uncaughtException'),
  'captures uncaught errors': () => process.setUncaughtExceptionCaptureCallback(() => {}),
  'removes all listeners': () => process.removeAllListeners(),
  'leaves a listener behind': () => process.on('uncaughtException', () => process.exit(1)),
  'replaces JSON.stringify': () => {
    JSON.stringify = fails('JSON') as never
  },
  'replaces Date.now': () => {
    Date.now = () => 0
  },
  'replaces structuredClone': () => {
    globalThis.structuredClone = fails('clone')
  },
  'replaces Promise': () => {
    globalThis.Promise = class extends Promise<unknown> {} as never
  },
  'replaces console.log': () => {
    console.log = fails('console')
  },
  'replaces Array.prototype.map': () => {
    Array.prototype.map = fails('map')
  },
  'replaces the iterator of arrays': () => {
    Array.prototype[Symbol.iterator] = fails('iterator')
  },
  'replaces Promise.prototype.then': () => {
    // biome-ignore lint/suspicious/noThenProperty: it is what the act is about
    Promise.prototype.then = fails('then')
  },
  'replaces queueMicrotask': () => {
    globalThis.queueMicrotask = fails('microtask')
  },
  'removes setTimeout': () => {
    Reflect.deleteProperty(globalThis, 'setTimeout')
  },
  'replaces Error': () => {
    globalThis.Error = undefined as never
  },
  'replaces process.nextTick': () => {
    process.nextTick = fails('tick')
  },
  'shadows process.emit': () => {
    process.emit = fails('emit') as never
  },
  'replaces EventEmitter.prototype.emit': () => {
    EventEmitter.prototype.emit = fails('emit')
  },
  'prepares stack traces': () => {
    Error.prepareStackTrace = fails('stack')
  },
  'turns off stack traces': () => {
    Error.stackTraceLimit = 0
  },
  'replaces what process.send calls': () => {
    const send: unknown = Reflect.get(process, '_send')
    if (typeof send !== 'function') return
    Reflect.set(process, '_send', (...message: readonly { isolate?: { kind?: unknown } }[]) => {
      if (message[0]?.isolate?.kind === 'log') process.env['LEFT_BEHIND'] = '1'
      return Reflect.apply(send, process, message)
    })
  },
  'gives all objects a hidden then': () => {
    Object.defineProperty(Object.prototype, 'then', { value: fails('then'), configurable: true })
  },
  'gives all arrays a toJSON': () => {
    Object.defineProperty(Array.prototype, 'toJSON', { value: fails('toJSON'), configurable: true })
  },
  'freezes the global object': () => {
    Object.preventExtensions(globalThis)
  },
  'freezes Object.prototype': () => Object.freeze(Object.prototype),
  'pollutes Object.prototype': () => {
    Object.defineProperty(Object.prototype, 'leftBehind', { value: 1, configurable: true, enumerable: true })
  },
  'closes its channel': async () => {
    process.disconnect?.()
    ;(workerData as { port?: { close(): void } } | null)?.port?.close()
    return never()
  },
  'closes the descriptor of its channel': async () => {
    if (process.channel === undefined) return
    closeSync(Number(process.env['NODE_CHANNEL_FD'] ?? 3))
    return never()
  },
  'closes the parent port': () => parentPort?.close(),
  'sends odd messages': () => {
    for (const message of [null, 1, 'text', {}, { kind: 'log' }, { kind: 'outcome' }, { kind: 'nothing' }, [1]]) {
      process.send?.(message as never)
      parentPort?.postMessage(message)
    }
  },
  'leaves timers behind': () => void setInterval(() => {}, 1),
  'rejects after it has returned': () => void setTimeout(() => Promise.reject(new Error('late')), 20),
  'throws a revoked proxy in a timer': () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    setTimeout(() => {
      throw proxy
    }, 1)
    return never()
  },
  'throws an unreadable error in a timer': () => {
    setTimeout(() => {
      throw Object.defineProperty(new Error(), 'message', { get: fails('message') })
    }, 1)
    return never()
  },
} as const satisfies Readonly<Record<string, () => unknown>>

const queue = 'q'
export const actTask = defineTask({ name: 'act.do', queue, input: z.string(), output: z.void() })
export const act = defineHandler(actTask, import.meta.url, async ({ input }) => {
  await (ACTS as Readonly<Record<string, () => unknown>>)[input]?.()
})

const shown = { cwd: process.cwd(), umask: process.umask() }
export const checkTask = defineTask({ name: 'act.check', queue, input: z.null(), output: z.unknown() })
export const check = defineHandler(checkTask, import.meta.url, async ({ log }) => {
  log.info({ a: [1] }, 'checking')
  console.log('')
  console.error('')
  return {
    isSame: process.cwd() === shown.cwd && process.umask() === shown.umask,
    env: process.env['LEFT_BEHIND'] ?? '',
    hasPath: 'PATH' in process.env,
    exitCode: process.exitCode ?? 0,
    json: JSON.stringify([1, structuredClone(2)].map((n) => n + 1)),
    isNow: Date.now() > 0,
    polluted: 'leftBehind' in {} || 'then' in {},
    hasStack: /acts.fixture/.test(new Error('here').stack ?? ''),
    emitted: process.emit('bullpen' as never),
    waited: await new Promise((resolve) => queueMicrotask(() => setTimeout(() => process.nextTick(resolve, true)))),
    inherits: Object.assign({}, { toString: () => 'own' }).toString(),
    listeners: process.listenerCount('uncaughtException'),
    builtIns: useBuiltIns(),
  }
})
