// An API with a board on a real Redis, and a pool that runs tasks as their inputs say.
import { randomUUID } from 'node:crypto'
import { openConsumer } from '@bullpen/bullmq/internal'
import type { ApiConfig } from '@bullpen/config'
import {
  type Accepted,
  defineCatalogue,
  defineHandler,
  defineQueue,
  defineTask,
  TaskError,
  type TaskView,
} from '@bullpen/contract'
import { realTimePool } from '@bullpen/testkit/internal'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { LogLine } from '../api.fixture.ts'
import { createApi } from '../create-api.ts'

export const QUEUE = 'bank'
const KEY = 'board-key-0123456789abcdef'

/** `error` is the code of the error with which the task fails, until {@link TestBoard.fixed} contains the code. */
const input = z.object({
  error: z.string().optional(),
  retryable: z.boolean().default(false),
  customer: z.int(),
  card: z.string().meta({ sensitive: true }).optional(),
})

const charge = defineTask({
  name: 'bank.charge',
  queue: QUEUE,
  input,
  output: z.object({ charged: z.int() }),
  retry: { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '1h' } },
})
/** Concurrency keys take turns in this queue. */
const idle = defineQueue({ name: 'idle', fairness: true })
const unattended = defineTask({ name: 'idle.wait', queue: idle, input: z.object({}), output: z.null() })

const silent = { debug() {}, info() {}, warn() {}, error() {} }

export type TestBoard = Awaited<ReturnType<typeof openBoard>>

export interface Changed {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of the body.
  readonly body: any
}

export async function openBoard(config: ApiConfig = {}) {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const lines: LogLine[] = []
  const log = {
    ...silent,
    info: (fields: object, message: string) => void lines.push({ level: 'info', fields, message }),
  }
  const common = { redisUrl, namespace, keys: [`ops:${KEY}`], port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue: defineCatalogue(charge, unattended), log, config: { ...common, ...config } })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const fixed = new Set<string>()
  await startPool(redisUrl, namespace, fixed)
  const cookie = await logIn(url)

  const ask = async (path: string, init: RequestInit = {}): Promise<Changed> => {
    const response = await fetch(`${url}${path}`, init)
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const asApi = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  return {
    url,
    key: KEY,
    cookie,
    lines,
    /** The codes of the errors whose causes have been removed. */
    fixed,
    /** Returns what the board's page receives. */
    board: async (path: string) => (await ask(`/board/api${path}`, { headers: { cookie } })).body,
    /** Sends what a button of the board's page sends. */
    press: (path: string, headers: Readonly<Record<string, string>> = { origin: url }, method = 'PUT') =>
      ask(`/board/api${path}`, { method, headers: { cookie, ...headers } }),
    api: (path: string, body?: object) =>
      ask(
        path,
        body === undefined ? { headers: asApi } : { method: 'POST', headers: asApi, body: JSON.stringify(body) },
      ),
    async enqueue(task: string, given: object, options: object = {}): Promise<string> {
      const { body } = await ask('/v1/tasks', {
        method: 'POST',
        headers: asApi,
        body: JSON.stringify({ task, input: given, ...options }),
      })
      return (body as Accepted).id
    },
    async task(id: string): Promise<TaskView> {
      return (await ask(`/v1/tasks/${id}`, { headers: asApi })).body
    },
  }
}

async function startPool(redisUrl: string, namespace: string, fixed: ReadonlySet<string>): Promise<void> {
  const handler = defineHandler(charge, import.meta.url, ({ input: { error, retryable, customer, card } }) => {
    if (error === undefined || fixed.has(error)) return { charged: customer }
    const from = card === undefined ? '' : ` from ${card}`
    throw new TaskError(error, `cannot charge customer ${customer}${from}`, { retryable })
  })
  const common = { redisUrl, namespace, log: silent, queue: QUEUE, concurrency: 8, retention: {} }
  const pool = realTimePool({
    queue: QUEUE,
    concurrency: 8,
    catalogue: defineCatalogue(charge),
    handlers: { 'bank.charge': handler },
    consumer: (runTask, host) => openConsumer(common, runTask, host),
  })
  await pool.start()
  onTestFinished(async () => void (await pool.drain({ drainMs: 0, graceMs: 500 })))
}

async function logIn(url: string): Promise<string> {
  const form = new URLSearchParams({ key: KEY, name: 'ann' })
  const login = await fetch(`${url}/board/login`, { method: 'POST', body: form, redirect: 'manual' })
  return login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}
