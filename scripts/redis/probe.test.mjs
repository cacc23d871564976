// PING over a raw socket, with a real redis-server.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../system/ports.mjs'
import { askRedis, pingRedis } from './probe.mjs'
import { startRedisServer } from './server.mjs'

describe('a ping', () => {
  it('reports why there is no answer', async () => {
    const port = await freePort()
    const answer = await pingRedis(`redis://127.0.0.1:${port}`, { within: 50 })
    expect(answer).toEqual({ ok: false, reason: expect.stringContaining('ECONNREFUSED') })
  })

  it.each([
    [
      'closes the connection without a reply',
      'redis',
      (socket) => socket.end(),
      /as if its port required TLS; use rediss:/,
    ],
    ['sends an alert of TLS', 'redis', (socket) => socket.end('\x15\x03\x01\0\x02\x02F'), /required TLS; use rediss:/],
    [
      'replies to a TLS handshake without TLS',
      'rediss',
      (socket) => socket.end('-ERR\r\n'),
      /did not use TLS; use redis:/,
    ],
    ['never replies to a TLS handshake', 'rediss', () => {}, /did not use TLS; use redis:/],
    ['never replies', 'redis', () => {}, /^no reply within 2000 ms$/],
  ])('names the reason if a server %s', async (_, protocol, answer, reason) => {
    const server = createServer((socket) => socket.on('error', () => {}).once('data', () => answer(socket)))
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `${protocol}://127.0.0.1:${server.address().port}`
    expect(await pingRedis(url, { within: 0 })).toEqual({ ok: false, reason: expect.stringMatching(reason) })
  })

  it('authenticates with the password of the URL', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'bullpen-redis-'))
    const server = await startRedisServer({ dir })
    try {
      await askRedis(server.url, ['CONFIG', 'SET', 'requirepass', 'p@ss'])
      expect(await pingRedis(server.url)).toMatchObject({ ok: false, reason: expect.stringContaining('NOAUTH') })
      const url = server.url.replace('://', '://:p%40ss@')
      expect(await pingRedis(url)).toEqual({ ok: true })
    } finally {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
