// A private server, with a real redis-server.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askRedis, pingRedis } from './probe.mjs'
import { resolveRedis } from './resolve.mjs'
import { startRedisServer } from './server.mjs'

describe('a private server', () => {
  let dir
  const servers = []
  const start = async (options = {}) => {
    const server = await startRedisServer({ dir, ...options })
    servers.push(server)
    return server
  }
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'bullpen-redis-'))
  })
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  const setting = async (url, name) => (await askRedis(url, ['CONFIG', 'GET', name]))[1]

  it('has the settings that a queue needs and listens on loopback only', async () => {
    const redis = await resolveRedis({ env: { PATH: process.env.PATH }, dataDir: dir })
    servers.push(redis)
    expect(redis).toMatchObject({ origin: 'binary', pid: expect.any(Number) })
    expect(await setting(redis.url, 'appendonly')).toBe('yes')
    expect(await setting(redis.url, 'appendfsync')).toBe('everysec')
    expect(await setting(redis.url, 'save')).toBe('')
    expect(await setting(redis.url, 'maxmemory-policy')).toBe('noeviction')
    expect(await setting(redis.url, 'hash-max-listpack-value')).toBe('1024')
    expect(await setting(redis.url, 'bind')).toBe('127.0.0.1')
  })

  it('keeps its data across a restart', async () => {
    const first = await start()
    await askRedis(first.url, ['SET', 'k', 'kept'])
    await first.stop()
    const second = await start()
    expect(await askRedis(second.url, ['GET', 'k'])).toBe('kept')
    expect(await askRedis(second.url, ['GET', 'other'])).toBeNull()
  })

  it('restarts on the same port after SIGKILL', async () => {
    const first = await start()
    first.kill('SIGKILL')
    await first.exited()
    expect(await pingRedis(first.url, { within: 0 })).toMatchObject({ ok: false })
    const second = await start({ port: first.port })
    expect(second.url).toBe(first.url)
    expect(second.pid).not.toBe(first.pid)
  })

  it('is taken over if it outlived its owner, and refused while the owner is alive', async () => {
    const script = `
      import { startRedisServer } from ${JSON.stringify(new URL('./server.mjs', import.meta.url).href)}
      const { pid } = await startRedisServer({ dir: process.argv[1] })
      console.log(pid)
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = await new Promise((resolve) => owner.stdout.once('data', (chunk) => resolve(Number(chunk))))
    await expect(startRedisServer({ dir })).rejects.toThrow(`for process ${owner.pid}, which is still running`)
    const gone = new Promise((resolve) => owner.once('exit', resolve))
    owner.kill('SIGKILL')
    await gone
    const server = await start()
    expect(server).toMatchObject({ pid, reused: true })
    await server.stop()
    expect(await pingRedis(server.url, { within: 0 })).toMatchObject({ ok: false })
  })

  it('that does not start is reported with its output', async () => {
    await expect(startRedisServer({ dir, args: ['--no-such-setting', '1'] })).rejects.toThrow(/no-such-setting/)
    const { port } = await start()
    await expect(startRedisServer({ dir: join(dir, 'other'), port })).rejects.toThrow(/Address already in use/)
  })
})
