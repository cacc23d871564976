// Tests the HTTP load against real servers.
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { openHttpLoad } from './http-load.ts'
import type { LoadRequest } from './workload.ts'

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function fail(error: Error): never {
  throw error
}

const request: LoadRequest = {
  text: (number) => `GET /${number} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`,
  tasks: 2,
  isAccepted: (response) => response.startsWith('HTTP/1.1 202 ') && response.endsWith('firstafter'),
}

it('every connection sends its next request after the complete response to its last one', async () => {
  const urls: (string | undefined)[] = []
  let unanswered = 0
  let most = 0
  const allConnected = Promise.withResolvers<void>()
  const port = await serve(({ url }, response) => {
    urls.push(url)
    unanswered++
    most = Math.max(most, unanswered)
    if (unanswered === 4) allConnected.resolve()
    response.writeHead(202, { 'content-length': 10 })
    response.write('first')
    // The rest of the body arrives in another chunk.
    void allConnected.promise.then(() =>
      setImmediate(() => {
        unanswered--
        response.end('after')
      }),
    )
  })
  const failures: Error[] = []
  const onFailed = (error: Error) => failures.push(error)
  const load = openHttpLoad({ port, connections: 4, request, onFailed })
  onTestFinished(() => load.close())
  await eventually(() => urls.length > 40)
  const { tasks, refused, seconds, p99Ms } = load.end()
  expect(refused).toBe(0)
  expect(tasks / request.tasks).toBeGreaterThan(30)
  expect(tasks / request.tasks).toBeLessThanOrEqual(urls.length)
  expect(p99Ms).toBeGreaterThan(0)
  expect(p99Ms).toBeLessThanOrEqual(seconds * 1_000)
  expect(most).toBe(4)
  expect(new Set(urls).size).toBe(urls.length)
  load.begin()
  expect(load.end().tasks).toBe(0)
  expect(failures).toEqual([])
})

it('a response that is not accepted counts as refused, and its connection sends its next request', async () => {
  let requests = 0
  const port = await serve((_request, response) => {
    if (requests++ === 0) response.writeHead(429, { 'content-length': 13 }).end('queue is full')
    else response.writeHead(202, { 'content-length': 10 }).end('firstafter')
  })
  const load = openHttpLoad({ port, connections: 1, request, onFailed: fail })
  onTestFinished(() => load.close())
  await eventually(() => load.end().tasks >= 10 * request.tasks)
  expect(load.end()).toMatchObject({
    refused: 1,
    lastRefusal: expect.stringMatching(/^HTTP\/1\.1 429 [\s\S]*queue is full/),
  })
  expect(load.end().tasks / request.tasks).toBeLessThan(requests)
})

it('a request is followed by another one over the same connection, and counts when both have been answered', async () => {
  const urls: (string | undefined)[] = []
  const port = await serve(({ url }, response) => {
    urls.push(url)
    response.writeHead(202, { 'content-length': 10 }).end(`first${url?.slice(-4).padStart(4, '0')}/`)
  })
  const followed: LoadRequest = {
    ...request,
    isAccepted: (response) => response.startsWith('HTTP/1.1 202 '),
    followedBy: (response) => `GET /after${response.slice(-5, -1)} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`,
  }
  const load = openHttpLoad({ port, connections: 1, request: followed, onFailed: fail })
  onTestFinished(() => load.close())
  await eventually(() => urls.length > 10)
  const { tasks, refused } = load.end()
  expect(refused).toBe(0)
  expect(tasks / followed.tasks).toBeGreaterThanOrEqual(4)
  expect(tasks / followed.tasks).toBeLessThanOrEqual(urls.length / 2)
  for (const [i, url] of urls.entries()) expect(url).toMatch(i % 2 === 0 ? /^\/\d+$/ : /^\/after[\d/]{4}$/)
})
