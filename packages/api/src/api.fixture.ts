// A complete API for tests, with a fake broker, a stopped clock, and a log that tests can read.
import { randomBytes } from 'node:crypto'
import { defineCatalogue, defineQueue, defineTask, type Log, type Problem, type TaskEvent } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { createBlockedCallers, type QueueHead } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import type { InjectOptions } from 'fastify'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { createKeyring } from './auth/keyring.ts'
import { type FakeBroker, fakeBroker } from './fake-broker.fixture.ts'
import { fakeFleet } from './fake-fleet.fixture.ts'
import type { Platform } from './http/context.ts'
import { createOpenStreams } from './http/open-streams.ts'
import { buildServer, type ServerOptions } from './http/server.ts'

export const KEY = 'test-key-0123456789abcdef'
/** The name of {@link KEY} in audit records. */
export const KEY_NAME = 'key 0813ba6d'
export const DEV_KEY = 'dev-key-0123456789abcdef'
export const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)

const square = defineTask({
  name: 'math.square',
  queue: 'cpu',
  kind: 'short',
  summary: 'n times n.',
  input: z.object({ n: z.int() }),
  output: z.object({ value: z.int() }),
})

const welcome = defineTask({
  name: 'email.welcome',
  queue: defineQueue({ name: 'mail', onShutdown: 'cancel', limits: { maxTasks: 500 }, slo: { startWithin: '30s' } }),
  input: z.object({
    to: z.email().transform((address) => address.toUpperCase()),
    lines: z.array(z.object({ text: z.string() })).default([]),
    extra: z.unknown().optional(),
    tree: z.json().optional(),
  }),
  output: z.object({ sent: z.boolean() }),
})

export const catalogue = defineCatalogue(square, welcome)
export const anId = createTaskId('cpu', NOW, new Uint8Array(10))

export interface LogLine {
  readonly level: keyof Log
  readonly fields: object
  readonly message: string
}

/** The head of a queue in which no task is waiting. */
export const EMPTY_HEAD: QueueHead = {
  ...{ oldest: undefined, nextReadyAt: undefined, blockedTasks: 0, oldestBlocked: undefined },
  ...{ isPaused: false, isDraining: false },
}

export const PLATFORM: Platform = {
  isDevelopment: false,
  memoryWatermark: 80,
  clockSkewMs: () => 0,
  servers: async () => [],
  leadership: async () => ({ isLed: true, changes: 0, overMs: 0 }),
  unreachableNodes: async () => [],
  head: async () => EMPTY_HEAD,
  lostTasks: async () => undefined,
  recentEnds: async () => ({ dead: 0, completed: 0, ofFingerprints: [] }),
}

export async function testApi(more: Partial<ServerOptions> = {}) {
  const broker: FakeBroker = fakeBroker()
  const fleet = fakeFleet(() => NOW)
  const lines: LogLine[] = []
  const events: TaskEvent[] = []
  const observed: object[] = []
  const timed: { readonly queue: string; readonly seconds: number }[] = []
  const closing = new AbortController()
  const blocked = createBlockedCallers(systemClock)
  const streams = createOpenStreams()
  const writes = (level: keyof Log) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
  }
  const app = await buildServer({
    catalogue,
    broker,
    fleet,
    blocked,
    streams,
    rates: { take: () => undefined },
    apiKeyNames: ['shop'],
    platform: PLATFORM,
    emit: (event) => events.push(event),
    enqueueTimed: (queue, seconds) => timed.push({ queue, seconds }),
    log: { debug: writes('debug'), info: writes('info'), warn: writes('warn'), error: writes('error') },
    now: () => NOW,
    randomBytes,
    closing: closing.signal,
    keyring: createKeyring([KEY], DEV_KEY),
    version: '1.2.3',
    bodyLimit: 262_144,
    bulkBodyLimit: 4_194_304,
    minBodyRate: 16_384,
    idempotencyLifeS: 86_400,
    corsOrigins: [],
    secureCookie: false,
    observe: (request) => observed.push(request),
    boardQueues: [],
    boardJobs: async () => [],
    allowBoardChanges: false,
    ...more,
  })
  onTestFinished(() => app.close())
  // This function is async because inject() sends its request only when it is awaited.
  const ask = async (options: InjectOptions) =>
    app.inject({ ...options, headers: { authorization: `Bearer ${KEY}`, ...options.headers } })
  return {
    app,
    broker,
    fleet,
    lines,
    events,
    observed,
    timed,
    closing,
    blocked,
    streams,
    ask,
    get: (url: string, headers = {}) => ask({ method: 'GET', url, headers }),
    /** A body given as text is sent unchanged. */
    post: (body: unknown, headers = {}) =>
      ask({
        method: 'POST',
        url: '/v1/tasks',
        headers: { 'content-type': 'application/json', ...headers },
        payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      }),
  }
}

/** Returns the problem in a response after checking the properties that every problem must have. */
export function problemIn(answer: {
  readonly statusCode: number
  readonly headers: Record<string, unknown>
  readonly body: string
}): Problem {
  if (answer.headers['content-type'] !== 'application/problem+json') {
    throw new Error(`${answer.statusCode} is not a problem: ${String(answer.headers['content-type'])} ${answer.body}`)
  }
  const problem = JSON.parse(answer.body) as Problem
  if (problem.status !== answer.statusCode || problem.requestId !== answer.headers['x-request-id']) {
    throw new Error(`the problem and its response differ: ${answer.statusCode} ${answer.body}`)
  }
  return problem
}
