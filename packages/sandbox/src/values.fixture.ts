// Handlers that let values of every kind leave in every way, once for each isolation. A value is described by the input, because most of
// them cannot be sent.
import { defineCatalogue, defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'

export type Description =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: keyof typeof ODD }
  | { readonly kind: 'array'; readonly items: readonly Description[] }
  | { readonly kind: 'object'; readonly fields: readonly (readonly [string, Description])[] }

class Money {
  readonly #cents = 1_250
  toJSON(key: string) {
    return `${(this.#cents / 100).toFixed(2)} as ${key}`
  }
}

class Hidden {
  readonly #secret = 1
  readonly shown = 2
  get sum() {
    return this.#secret + this.shown
  }
}

const cyclic = () => {
  const own: { self?: unknown } = {}
  own.self = { own }
  return own
}

const sparse = () => {
  const items: unknown[] = []
  items[3] = 'd'
  return items
}

const nested = (levels: number) => () => {
  let value: object = {}
  for (let level = 1; level < levels; level++) value = { value }
  return value
}

const throwing = (message: string) => (): never => {
  throw new RangeError(message)
}

const ODD = {
  undefined: () => undefined,
  function: () => () => 1,
  symbol: () => Symbol('s'),
  nan: () => Number.NaN,
  'minus zero': () => -0,
  infinity: () => Number.NEGATIVE_INFINITY,
  bigint: () => 1n,
  date: () => new Date(0),
  'invalid date': () => new Date(Number.NaN),
  url: () => new URL('http://shop.example/1'),
  map: () => new Map([['a', 1]]),
  set: () => new Set([1]),
  buffer: () => Buffer.from('ab'),
  bytes: () => new Uint8Array([1, 2]),
  floats: () => new Float64Array([0.5, Number.NaN]),
  memory: () => new ArrayBuffer(2),
  regexp: () => /a/g,
  boxed: () => Object('text'),
  error: () => Object.assign(new TypeError('bad'), { code: 'E_BAD', more: { a: 1 } }),
  promise: () => Promise.resolve(1),
  money: () => new Money(),
  hidden: () => new Hidden(),
  cycle: cyclic,
  'as deep as possible': nested(490),
  deep: nested(600),
  'deeper than a small stack': nested(10_000),
  'deeper than any stack': nested(100_000),
  sparse,
  bare: () => Object.assign(Object.create(null), { a: 1 }),
  inherited: () => Object.assign(Object.create({ not: 'own' }), { own: 1 }),
  proto: () => JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
  'half a pair': () => '\ud83d',
  'symbol key': () => ({ [Symbol('s')]: 1, a: 2 }),
  getter: () => Object.defineProperty({}, 'a', { enumerable: true, get: () => new Date(1) }),
  'throwing getter': () => Object.defineProperty({}, 'a', { enumerable: true, get: throwing('read') }),
  'throwing toJSON': () => ({ toJSON: throwing('toJSON') }),
  proxy: () => new Proxy({ a: 1 }, {}),
  'throwing proxy': () => new Proxy({}, { ownKeys: throwing('ownKeys') }),
  'revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  },
} as const satisfies Readonly<Record<string, () => unknown>>

export const ODD_KINDS = Object.keys(ODD) as readonly (keyof typeof ODD)[]

function build(description: Description): unknown {
  switch (description.kind) {
    case 'json':
      return description.value
    case 'array':
      return description.items.map(build)
    case 'object':
      return Object.fromEntries(description.fields.map(([name, field]) => [name, build(field)]))
    default:
      return ODD[description.kind]()
  }
}

const schemas = { queue: 'q', timeout: '1m', input: z.any(), output: z.any(), retry: { maxAttempts: 1 } } as const
const next = defineTask({ name: 'values.next', queue: 'q', input: z.any() })
const make = (isolation: 'inline' | 'thread' | 'process') =>
  defineTask({
    ...schemas,
    name: `values.${isolation}`,
    isolation,
    onSuccess: (followUp) => [followUp(next, ({ output }) => ({ output }))],
  })
const [inInline, inThread, inProcess] = [make('inline'), make('thread'), make('process')]
export const catalogue = defineCatalogue(inInline, inThread, inProcess, next)

type Context = TaskContext<typeof inInline>

/** Lets the value leave in each way that may throw, and notes what was thrown. */
async function send({ enqueue, onSuccess, onFailure, compensate, once, progress, log }: Context, value: unknown) {
  const thrown: string[] = []
  const acts: Readonly<Record<string, () => unknown>> = {
    enqueue: () => enqueue(next, value),
    nested: () => enqueue(next, { value }, { childKey: 'k', onEnd: [{ task: 'values.next', input: value }] as never }),
    onSuccess: () => onSuccess(next, value),
    onFailure: () => onFailure(next, { value }),
    compensate: () => compensate(next, [value]),
    once: async () => JSON.stringify(await once('step', () => value as string)),
    progress: () => progress(0.5, value as string),
    fraction: () => progress(value as number),
    log: () => log.info({ value, nested: { value } }, 'logged'),
    fields: () => log.warn(value as object, value as string),
  }
  for (const [name, act] of Object.entries(acts)) {
    try {
      await act()
    } catch (error) {
      thrown.push(`${name}: ${error}`)
    }
  }
  return thrown
}

/** Reads what a context says about the task. */
function readContext(context: Context) {
  const { id, attempt, fencingToken, meta, enqueuedAt, correlationId, traceContext, group, followUpOf } = context
  return { id, attempt, fencingToken, meta, enqueuedAt, correlationId, traceContext, group, followUpOf }
}

const handle = async (context: Context) => {
  const { way, description } = context.input
  if (way === 'context') return readContext(context)
  const value = build(description)
  switch (way) {
    case 'send':
      return send(context, value)
    case 'return':
      // A promise is awaited, wherever the handler runs.
      return value
    default:
      throw value
  }
}

export const inlineHandler = defineHandler(inInline, import.meta.url, handle)
export const threadHandler = defineHandler(inThread, import.meta.url, handle as never)
export const processHandler = defineHandler(inProcess, import.meta.url, handle as never)
export const nextHandler = defineHandler(next, import.meta.url, () => {})

export const handlers = {
  'values.inline': inlineHandler,
  'values.thread': threadHandler,
  'values.process': processHandler,
  'values.next': nextHandler,
} as const
