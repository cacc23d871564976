// The Python program of a how-to page runs as it is quoted, against the API of the example, and prints what its page says.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineHandler } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'
import { requiredProgram } from '@bullpen/testing'
import { createWorker } from '@bullpen/worker'
import { expect, inject, it, onTestFinished } from 'vitest'

const programs = join(import.meta.dirname, 'programs/python')
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Passes requests on to the API at `url`, except that the first response breaks off in its body. Returns the address. */
async function breakingOnce(url: string): Promise<string> {
  let isFirst = true
  const server = createServer(async (request, response) => {
    const { method = 'GET', headers } = request
    const body = method === 'GET' ? undefined : await text(request)
    const passedOn = ['authorization', 'content-type', 'idempotency-key'].flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    })
    const received = await fetch(`${url}${request.url}`, {
      method,
      headers: Object.fromEntries(passedOn),
      body: body ?? null,
    })
    const content = await received.text()
    const type = received.headers.get('content-type') ?? ''
    response.writeHead(received.status, { 'content-type': type, 'content-length': Buffer.byteLength(content) })
    if (isFirst) response.write(content.slice(0, 5), () => request.socket.destroy())
    else response.end(content)
    isFirst = false
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it.each([
  ['the Python program prints what its page says', async (url: string) => url],
  ['the Python program repeats a request whose response breaks off', breakingOnce],
])('%s', async (_, reach) => {
  const key = randomUUID()
  const catalogue = defineCatalogue(mathFactorial)
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${key.slice(0, 8)}` }
  const api = await createApi({ catalogue, log: silent, config: { ...common, keys: [key], port: 0, metricsPort: 0 } })
  onTestFinished(() => api.close())
  const factorial = defineHandler(mathFactorial, import.meta.url, async ({ input: { n } }) => ({
    value: Array.from({ length: n }, (_, i) => BigInt(i + 1))
      .reduce((product, each) => product * each, 1n)
      .toString(),
  }))
  const handlers = { 'math.factorial': factorial }
  const worker = createWorker({ catalogue, handlers, config: { ...common, port: 0, logLevel: 'silent' } })
  onTestFinished(async () => void (await worker.drain()))
  await worker.start()
  const { url } = await api.listen()
  const env = { PATH: process.env['PATH'], URL: await reach(url), KEY: key }
  const { stdout } = await promisify(execFile)(await requiredProgram('python'), ['enqueue.py'], { cwd: programs, env })
  expect(stdout).toBe(readFileSync(join(programs, 'enqueue.out'), 'utf8'))
})
