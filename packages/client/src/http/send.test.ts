// Tests how requests are sent on Node: with its own HTTP client, unless something expects them to go through `fetch`.
import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tlsFile, tlsFront } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { closeAfterTest } from '../server.fixture.ts'
import { createSend, type Send } from './send.ts'

const request = (signal = new AbortController().signal) => ({ method: 'GET', headers: {}, body: undefined, signal })

async function serve(listener: RequestListener) {
  const server = closeAfterTest(createServer(listener)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { server, port, url: new URL(`http://127.0.0.1:${port}/v1/a?b=c%20d`) }
}

/** Returns whether a request went through `fetch`, which adds a header of its own. */
async function usesFetch(send: Send): Promise<boolean> {
  let isFetch: boolean | undefined
  const { url } = await serve(({ headers }, response) => {
    isFetch = 'sec-fetch-mode' in headers
    response.end()
  })
  await send(url, request())
  if (isFetch === undefined) throw new Error('no request has arrived')
  return isFetch
}

describe('a request', () => {
  test('arrives as it was given, over a connection that is kept', async () => {
    const seen: object[] = []
    const { server, url } = await serve(async ({ method, url, headers, socket }, response) => {
      seen.push({ method, url, key: headers['x-key'], length: headers['content-length'], from: socket.remotePort })
      response.writeHead(202, { 'X-Name': 'n', 'content-length': 6 }).write(Buffer.from('aé').subarray(0, 2))
      setImmediate(() => response.end(Buffer.concat([Buffer.from('aé').subarray(2), Buffer.from('bcd')])))
    })
    const connections = vi.fn()
    server.on('connection', connections)
    const send = createSend(undefined)
    const post = { ...request(), method: 'POST', headers: { 'x-key': 'k' }, body: '{"a":"é"}' }
    for (let i = 0; i < 3; i++) {
      const { headers, ...response } = await send(url, post)
      expect(response).toEqual({ status: 202, ok: true, text: 'aébcd' })
      expect([headers.get('x-name'), headers.get('x-other')]).toEqual(['n', null])
    }
    expect(seen).toHaveLength(3)
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/v1/a?b=c%20d', key: 'k', length: '10' })
    expect(connections).toHaveBeenCalledTimes(1)
  })

  test('that is aborted rejects with the reason, and closes its connection', async () => {
    const arrived = Promise.withResolvers<void>()
    let isGone = false
    const { url } = await serve(({ socket }) => {
      socket.on('close', () => {
        isGone = true
      })
      arrived.resolve()
    })
    const controller = new AbortController()
    const sent = createSend(undefined)(url, request(controller.signal)).catch((reason: unknown) => reason)
    await arrived.promise
    controller.abort('enough')
    expect(await sent).toBe('enough')
    await eventually(() => isGone)
    await expect(createSend(undefined)(url, request(AbortSignal.abort('before')))).rejects.toBe('before')
  })

  test('says that there is no connection if the server does not complete the handshake in 10 s', async () => {
    const accepted = Promise.withResolvers<void>()
    const server = createTcpServer((socket) => {
      onTestFinished(() => void socket.destroy())
      accepted.resolve()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const sent = createSend(undefined)(url, request()).catch((error: unknown) => error)
    await accepted.promise
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await sent).toMatchObject({ code: 'CONNECT_TIMEOUT' })
  })

  test.each(['HTTP/1.1 101 Switching Protocols\r\nupgrade: a\r\nconnection: upgrade\r\n\r\n', 'nonsense\r\n\r\n'])(
    'rejects if the response is %j',
    async (bytes) => {
      const server = createTcpServer((socket) => socket.resume().end(bytes)).listen(0, '127.0.0.1')
      onTestFinished(() => void server.close())
      await once(server, 'listening')
      const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      await expect(createSend(undefined)(url, request())).rejects.toThrow()
    },
  )
})

describe('over TLS', () => {
  test('a certificate is checked, and those of the global agent are trusted', async () => {
    const { port } = await serve((_request, response) => response.end('ok'))
    const url = new URL(`https://127.0.0.1:${await tlsFront(port)}`)
    const send = createSend(undefined)
    await expect(send(url, request())).rejects.toMatchObject({ code: expect.stringMatching(/CERT|SIGNATURE/) })
    const { globalAgent } = https
    onTestFinished(() => void Object.assign(https, { globalAgent }))
    https.globalAgent = new https.Agent({ ca: readFileSync(tlsFile('ca.pem')) })
    expect(await send(url, request())).toMatchObject({ status: 200, text: 'ok' })
  })
})

describe('fetch', () => {
  test('is not used, unless it is given or has been replaced', async () => {
    expect(await usesFetch(createSend(undefined))).toBe(false)
    expect(await usesFetch(createSend(fetch))).toBe(true)
    const own = globalThis.fetch
    onTestFinished(() => void Object.assign(globalThis, { fetch: own }))
    globalThis.fetch = (...args) => own(...args)
    expect(await usesFetch(createSend(undefined))).toBe(true)
  })

  test('is used while instrumentation listens to it, which may add a header', async () => {
    const send = createSend(undefined)
    const add = (message: unknown): void => {
      const { request } = message as { readonly request: { addHeader(name: string, value: string): void } }
      request.addHeader('traceparent', '00-a-b-01')
    }
    const created = channel('undici:request:create')
    created.subscribe(add)
    onTestFinished(() => void created.unsubscribe(add))
    let traceparent: unknown
    const { url } = await serve(({ headers }, response) => {
      traceparent = headers['traceparent']
      response.end()
    })
    await send(url, request())
    expect(traceparent).toBe('00-a-b-01')
    created.unsubscribe(add)
    expect(await usesFetch(send)).toBe(false)
  })

  test('is used while a dispatcher of another class sends its requests, such as that of a proxy', async () => {
    const key = Symbol.for('undici.globalDispatcher.1')
    const own = Reflect.get(globalThis, key)
    onTestFinished(() => void Reflect.set(globalThis, key, own))
    class ProxyAgent {
      readonly dispatch = (): never => {
        throw new Error('the proxy was asked')
      }
    }
    Reflect.set(globalThis, key, new ProxyAgent())
    await expect(usesFetch(createSend(undefined))).rejects.toThrow()
  })
})
