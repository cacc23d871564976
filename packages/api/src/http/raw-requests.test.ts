// Tests what the API responds to requests that HTTP clients do not send by themselves, written to a socket byte by byte.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { KEY, testApi } from '../api.fixture.ts'
import { isTooSlow, requestTimeoutMs } from './slow-bodies.ts'

/** Opens a connection to an API, and returns it with the text that it will have received when it closes. */
async function dial(more: Parameters<typeof testApi>[0] = {}) {
  const { app, ...api } = await testApi(more)
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  const received = text(socket)
  return { ...api, socket: socket.on('error', () => {}), received }
}

const HEAD = `POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n`
const BODY = JSON.stringify({ task: 'math.square', input: { n: 4 }, meta: { shop: 'a' } }).padEnd(9_000)

/** Sends the body in parts of this size, `everyMs`, until it is sent or the connection closes. */
async function drip(socket: Socket, body: string, bytes: number, everyMs: number) {
  for (let at = 0; at < body.length && socket.writable; at += bytes) {
    socket.write(body.slice(at, at + bytes))
    await sleep(everyMs)
  }
}

describe('a body', () => {
  test.each([
    [680_000, 136_000, 16_384, false],
    [4_194_304, 20_000, 16_384, false],
    [4_194_304, 1_000, 16_384, true],
    [100, 1, 16_384, true],
  ])('of %i bytes that arrives at %i bytes/s when %i are required is refused: %s', (bytes, rate, required, refused) => {
    const seconds = Array.from({ length: Math.ceil(bytes / rate) }, (_, i) => i)
    const tooSlow = seconds.findIndex((second) => isTooSlow(second, second * rate, required))
    expect(tooSlow !== -1).toBe(refused)
    expect(tooSlow).toBeLessThanOrEqual(4)
    if (!refused) expect((bytes / rate) * 1_000).toBeLessThan(requestTimeoutMs(bytes, required))
  })

  test.concurrent('that arrives more slowly than the rate is refused, and its connection is closed', async () => {
    const { socket, received, broker } = await dial()
    socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`)
    await drip(socket, BODY, 1, 100)
    expect(await received).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n.*"code":"request_timeout"/s)
    expect(broker.enqueued).toEqual([])
  }, 60_000)

  test.concurrent('that takes longer than 3 s at a sufficient rate is accepted', async () => {
    const { socket, received } = await dial({ minBodyRate: 256 })
    socket.write(`${HEAD}Content-Length: ${BODY.length}\r\n\r\n`)
    await drip(socket, BODY, 1_000, 600)
    expect(await received).toMatch(/^HTTP\/1\.1 202 /)
  }, 60_000)

  test.concurrent('of which the rest does not arrive after the response gets no second response', async () => {
    const { socket, received } = await dial()
    socket.write(`${HEAD.replace('/v1/tasks', '/nope').replace('close', 'keep-alive')}Content-Length: 9\r\n\r\n{`)
    expect((await received).match(/HTTP\/1\.1/g)).toEqual(['HTTP/1.1'])
  }, 60_000)
})
