// Handlers that do everything that a handler should and should not do.
import { spawn } from 'node:child_process'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { defineHandler, rateLimited, type TaskContext, TaskError } from '@bullpen/contract'
import * as tasks from './tasks.fixture.ts'

const here = import.meta.url
const place = () => ({ pid: process.pid, thread: threadId })
const never = () => new Promise<never>(() => {})

export const where = defineHandler(tasks.where, here, ({ input }) => ({ ...place(), n: input.n * 2 }))

export const args = defineHandler(tasks.args, here, () => ({ args: process.argv.slice(2) }))

export const fail = defineHandler(tasks.fail, here, () => {
  throw new TaskError('bank_away', 'the bank is away', { retryAfter: '5s', cause: new Error('no route') })
})

export const panic = defineHandler(tasks.panic, here, async ({ input }) => {
  if (input.what === 'text') throw 'a text'
  throw new TypeError('undeclared', { cause: new RangeError('the cause') })
})

const outOfRange = () => {
  throw new RangeError('too far')
}
export const classified = defineHandler(tasks.classified, here, outOfRange)
export const badClassifier = defineHandler(tasks.badClassifier, here, outOfRange)

export const output = defineHandler(tasks.output, here, ({ input }) => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const outputs = {
    wrong: 'wrong',
    function: { f() {} },
    bigint: { n: 1n },
    cycle,
    date: new Date(0),
    nothing: undefined,
  }
  return outputs[input.what]
})

export const escaping = defineHandler(tasks.escaping, here, async ({ input, signal, log }) => {
  switch (input.how) {
    case 'timer':
      setTimeoutOf(() => {
        throw new TypeError('thrown in a timer', { cause: new Error('why') })
      })
      return never()
    case 'text':
      setTimeoutOf(() => {
        throw 'a text'
      })
      return never()
    case 'rejection':
      void Promise.reject(new TypeError('not awaited'))
      return never()
    case 'forgotten':
      void Promise.reject(new TypeError('forgotten, then returned'))
      return {}
    case 'listener':
      signal.addEventListener('abort', () => {
        throw new TypeError('thrown by a listener')
      })
      log.info('listening')
      return never()
  }
})

const setTimeoutOf = (callback: () => void) => void globalThis.setTimeout(callback, 1)

let setOff = (): void => {}
export const leave = defineHandler(tasks.leave, here, ({ input, log, progress }) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  setOff = resolve
  const effects = {
    throw: () => queueMicrotask(() => fails('left behind')),
    reject: () => fails('left behind'),
    exit: () => process.exit(9),
    log: () => log.warn({ a: 1 }, 'said late'),
    progress: () => progress(0.5),
  }
  void promise.then(effects[input.what])
  return {}
})
const fails = (message: string): never => {
  throw new Error(message)
}

export const trigger = defineHandler(tasks.trigger, here, async () => {
  setOff()
  // Two turns of the event loop: a rejection is reported after the first.
  await setImmediate()
  await setImmediate()
  return place()
})

export const idleEscape = defineHandler(tasks.idleEscape, here, () => {
  globalThis.setTimeout(() => fails('escaped while idle'), 20)
  return {}
})

export const exit = defineHandler(tasks.exit, here, ({ input, log }) => {
  log.info({}, 'exiting')
  process.exit(input.code)
})

export const program = defineHandler(tasks.program, here, async ({ input, log }) => {
  const { pid } = spawn('sleep', ['600'], { stdio: 'ignore' })
  log.info({ pid }, 'started')
  if (input.next === 'exit') process.exit(3)
  if (input.next === 'wait') await never()
  while (input.next === 'loop') {}
  return {}
})

export const loop = defineHandler(tasks.loop, here, ({ log }) => {
  log.info({ pid: process.pid }, 'looping')
  while (true) {}
})

export const wait = defineHandler(tasks.wait, here, async ({ input, signal, log, checkpoint }) => {
  log.info({ pid: process.pid }, 'waiting')
  try {
    if (input.for === 'timer') await setTimeout(60_000, undefined, { signal })
    if (input.for === 'fetch') await fetch(input.url, { signal })
    if (input.for === 'nothing') await never()
    while (input.for === 'checkpoint') {
      checkpoint()
      await setImmediate()
    }
    return { reason: 'none came' }
  } catch (error) {
    return { reason: `${error}; ${signal.reason instanceof DOMException} ${signal.reason}` }
  }
})

export const progress = defineHandler(tasks.progress, here, async ({ input, progress }) => {
  const order: string[] = []
  for (const fraction of input.fractions) {
    await progress(fraction, 'so far').then(
      () => order.push(`stored ${fraction}`),
      (error) => order.push(String(error)),
    )
  }
  return { order }
})

export const children = defineHandler(tasks.children, here, async ({ input, enqueue }) => {
  const order: string[] = []
  for (const key of input.keys) {
    await enqueue(tasks.context, { a: 1 }, { childKey: key }).then(
      ({ id, action }) => order.push(`${action} ${id}`),
      (error) => order.push(String(error)),
    )
  }
  return { order }
})

export const compensated = defineHandler(
  tasks.compensated,
  here,
  async ({ compensate, onSuccess, onFailure, onEnd }) => {
    onSuccess(tasks.context, { a: 2 })
    await compensate(tasks.context, { a: 1 }, { key: 'k' })
    await onFailure(tasks.context, { a: 3 })
    await onEnd(tasks.context, { a: 4 }, { delay: '1s' })
    return {}
  },
)

export const limited = defineHandler(tasks.limited, here, () => {
  throw rateLimited('30s', { of: 'concurrencyKey' })
})

export const steps = defineHandler(tasks.steps, here, async ({ input, once }) => {
  const order: unknown[] = []
  for (const step of input.steps) {
    await once(step, (key) => stepRuns[step]?.() ?? key).then(
      (result) => order.push(result),
      (error) => order.push(error.code ?? String(error)),
    )
  }
  return { order }
})
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const stepRuns: Record<string, () => never> = {
  throws: () => fails('a step fails'),
  cycle: () => cyclic as never,
}

export const snoozing = defineHandler(tasks.snoozing, here, ({ snooze }) => snooze('10m'))

export const log = defineHandler(tasks.log, here, ({ log }) => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  log.debug({ big: 1n, at: new Date(0) }, 'd')
  log.info({ cycle, f() {} }, 'i')
  log.warn({ err: Object.assign(new TypeError('bad', { cause: new Error('why') }), { code: 'E_BAD' }) }, 'w')
  log.error({ nested: { err: new Error('deep') } }, 'e')
  return {}
})

export const context = defineHandler(tasks.context, here, (ctx) => {
  const { heartbeat, checkpoint, signal, poolSignal, enqueuedAt, startedAt, log, progress, resources, ...others } = ctx
  const { snooze, enqueue, once, compensate, onSuccess, onFailure, onEnd, ...rest } = others
  heartbeat()
  checkpoint()
  return {
    ...rest,
    times: [enqueuedAt.getTime(), startedAt.getTime()],
    oneSignal: signal === poolSignal && !signal.aborted,
    types: [log.info, progress, resources, snooze, enqueue, once, compensate, onSuccess, onFailure, onEnd].map(
      (member) => typeof member,
    ),
  }
})

interface Opened {
  readonly first: { readonly opened: number }
  readonly second: { readonly name: string }
}
export const resource = defineHandler(
  tasks.resource,
  here,
  ({ resources: { first, second } }: TaskContext<typeof tasks.resource, Opened>) => ({
    ...place(),
    first: first.opened,
    second: second.name,
  }),
)

const HOLD: Record<string, () => void> = {
  objects() {
    for (const kept: object[] = []; ; ) kept.push({ a: kept.length, b: [kept.length] })
  },
  array() {
    const kept = new Array(1e8).fill(1.5)
    throw new Error(`it fits: ${kept.length}`)
  },
  map() {
    for (const kept = new Map<number, object>(); ; ) kept.set(kept.size, { at: kept.size })
  },
  json() {
    const kept = JSON.parse(`[${'{"a":[1.5,2.5]},'.repeat(8_000_000)}1]`)
    throw new Error(`it fits: ${kept.length}`)
  },
  buffers() {
    for (const kept: Buffer[] = []; ; ) kept.push(Buffer.alloc(2 ** 24, 1))
  },
}
export const memory = defineHandler(tasks.memory, here, ({ input }) => {
  HOLD[input.how]?.()
  return {}
})

const kept: Buffer[] = []
export const keep = defineHandler(tasks.keep, here, async ({ input }) => {
  kept.push(Buffer.alloc(input.bytes, 1))
  if (input.wait) await never()
  return place()
})

/** (import "a" "b" (func (param i32))) (func (export "f") i32.const 0 call 0) */
const CALLS_JS = [
  [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  [0x01, 0x08, 0x02, 0x60, 0x00, 0x00, 0x60, 0x01, 0x7f, 0x00],
  [0x02, 0x07, 0x01, 0x01, 0x61, 0x01, 0x62, 0x00, 0x01],
  [0x03, 0x02, 0x01, 0x00],
  [0x07, 0x05, 0x01, 0x01, 0x66, 0x00, 0x01],
  [0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0x10, 0x00, 0x0b],
]

// Node's types do not declare WebAssembly. Only the types for browsers do.
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: Record<string, unknown> }
}

export const wasm = defineHandler(tasks.wasm, here, ({ input }) => {
  let called = 0
  const module = new WebAssembly.Module(Uint8Array.from(CALLS_JS.flat()))
  const { exports } = new WebAssembly.Instance(module, { a: { b: () => called++ } })
  const call = exports['f'] as () => void
  for (let i = 0; i < input.calls; i++) call()
  return { called }
})
