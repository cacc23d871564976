// PING over a raw socket, with a real redis-server.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePort } from '../system/ports.mjs'
import { askRedis, pingRedis } from './probe.mjs'
import { startRedisServer } from './server.mjs'

describe('a ping', () => {
  it('reports why there is no answer', async () => {
    const port = await freePort()
    const answer = await pingRedis(`redis://127.0.0.1:${port}`, { within: 50 })
    expect(answer).toEqual({ ok: false, reason: expect.stringContaining('ECONNREFUSED') })
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
