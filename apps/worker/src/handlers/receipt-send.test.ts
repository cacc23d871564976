// Tests the handler of receipt.send against a real HTTP server that can be made to fail.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TaskContext } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import { type RunTaskOptions, runTask } from '@bullpen/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import type { WorkerResources } from '../resources/index.ts'
import { openReceiptGateway, retryAfter } from '../resources/receipt-gateway.ts'
import { ONCE, outputOf } from './output-of.fixture.ts'
import receipt from './receipt-send.ts'
import { resourcesWith } from './resources.fixture.ts'

const input = { orderId: '7', to: 'ann@example.org', total: '19.90', currency: 'EUR' }

const servers: ReturnType<typeof createServer>[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

async function endpoint(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/receipts?token=hidden`
}

const answering = (status: number, headers: Record<string, string> = {}) =>
  endpoint((_, response) => response.writeHead(status, headers).end('the answer'))

async function send(url: string | undefined, options: RunTaskOptions<WorkerResources> = {}) {
  const receipts = await openReceiptGateway({ endpoint: url })
  return runTask(receiptSend, receipt, input, { ...ONCE, ...options, resources: resourcesWith({ receipts }) })
}

const run = async (url: string | undefined) => outputOf(await send(url))

test('a receipt is posted as JSON, with a key that all attempts share', async () => {
  const seen: Readonly<Record<string, unknown>>[] = []
  const url = await endpoint(async (request, response) => {
    const { method, url: path, headers } = request
    seen.push({
      method,
      path,
      type: headers['content-type'],
      key: headers['idempotency-key'],
      body: await text(request),
    })
    response.writeHead(seen.length === 1 ? 503 : 202).end()
  })
  const sent = await send(url, { maxAttempts: 2 })
  expect(sent.output).toEqual({ status: 202, deliveredAt: expect.stringMatching(/^20.*Z$/) })
  const expected = {
    method: 'POST',
    path: '/receipts?token=hidden',
    type: 'application/json',
    key: expect.stringMatching(/^[0-9a-f]{32}$/),
    body: JSON.stringify(input),
  }
  expect(seen).toEqual([expected, expected])
  expect(new Set(seen.map(({ key }) => key)).size).toBe(1)
})

test('a receipt is delivered only once even if its worker dies before the delivery is recorded', async () => {
  let seen = 0
  const url = await endpoint((_, response) => {
    seen++
    response.writeHead(202).end()
  })
  const receipts = await openReceiptGateway({ endpoint: url })
  const run = await runTask(
    receiptSend,
    async (context: TaskContext<typeof receiptSend, WorkerResources>) => {
      const output = await receipt.handle(context)
      return context.fencingToken > 1 ? output : new Promise(() => {})
    },
    input,
    { clock: 'real', crashAt: '500ms', resources: resourcesWith({ receipts }) },
  )
  expect(run).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1, output: { status: 202 } })
  expect(seen).toBe(1)
})

describe('a transient failure is retryable:', () => {
  test.each([500, 502, 503, 429, 408])('%i', async (status) => {
    await expect(run(await answering(status))).rejects.toMatchObject({
      code: 'delivery_failed',
      retryable: true,
      retryAfterMs: undefined,
      message: expect.stringMatching(new RegExp(`${status}$`)),
    })
  })

  test('after the Retry-After of the endpoint', async () => {
    const url = await answering(503, { 'retry-after': '7' })
    await expect(run(url)).rejects.toMatchObject({ code: 'delivery_failed', retryAfterMs: 7_000 })
  })

  test('nothing listens at the endpoint', async () => {
    const url = await answering(200)
    servers[0]?.close()
    const failure = { code: 'delivery_failed', retryable: true, message: expect.stringContaining('ECONNREFUSED') }
    await expect(run(url)).rejects.toMatchObject(failure)
  })

  test('the connection breaks before an answer, and the error does not contain the endpoint’s query', async () => {
    const url = await endpoint((request) => request.socket.destroy())
    const error = await run(url).catch((caught) => caught)
    expect(error).toMatchObject({ code: 'delivery_failed', retryable: true })
    expect(error.message).not.toContain('hidden')
  })
})

test.each([400, 401, 404, 422, 301, 307])('status %i is a permanent refusal', async (status) => {
  const url = await answering(status, { location: 'http://127.0.0.1:9/' })
  await expect(run(url)).rejects.toMatchObject({ code: 'delivery_refused', retryable: false })
})

test('without an endpoint the task fails permanently and names the setting', async () => {
  await expect(run(undefined)).rejects.toMatchObject({
    code: 'no_endpoint',
    retryable: false,
    message: expect.stringContaining('BULLPEN_WORKER_RECEIPT_ENDPOINT'),
  })
})

test.each(['ftp://x', 'nonsense', 'http://ann:secret@localhost/'])('%s is rejected as an endpoint', async (wrong) => {
  await expect(openReceiptGateway({ endpoint: wrong })).rejects.toMatchObject({
    code: 'invalid_configuration',
    message: expect.not.stringContaining('secret'),
  })
})

test('a cancelled task stops waiting for an answer', async () => {
  const url = await endpoint(() => {})
  expect(await send(url, { cancelAt: '50ms' })).toMatchObject({ status: 'cancelled', late: [] })
})

test('Retry-After is read as seconds or as a date, up to a day', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  expect(retryAfter('2', now)).toBe('2s')
  expect(retryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now)).toBe('1m')
  expect(retryAfter('99999999999', now)).toBe('1d')
  for (const nothing of [null, '0', 'soon', '-1', 'Wed, 31 Dec 2025 00:00:00 GMT']) {
    expect(retryAfter(nothing, now)).toBeUndefined()
  }
})
