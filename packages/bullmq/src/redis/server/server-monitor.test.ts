// The checks of a real server's settings: what is logged, and when.
import type { Log } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openServerMonitor } from './server-monitor.ts'

async function monitored({ user = '' }: { user?: string } = {}) {
  const server = await privateRedis()
  await server.start()
  const admin = connect(server.url)
  await admin.config('SET', 'maxmemory', '100mb')
  if (user !== '') await admin.acl('SETUSER', 'producer', 'on', '>secret', '~*', '&*', '+@all', ...user.split(' '))
  const redisUrl = user === '' ? server.url : server.url.replace('redis://', 'redis://producer:secret@')
  const lines: { level: string; fields: object; message: string }[] = []
  const writes = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const log: Log = { debug: writes('debug'), info: writes('info'), warn: writes('warn'), error: writes('error') }
  return {
    admin,
    lines,
    open(level: 'warn' | 'info' = 'warn') {
      const monitor = openServerMonitor({ redis: connect(redisUrl), redisUrl, log, level, everyMs: 20 })
      onTestFinished(() => monitor.close())
      return monitor
    },
  }
}

function connect(url: string): Redis {
  const redis = new Redis(url)
  onTestFinished(() => redis.disconnect())
  return redis
}

describe('the monitor of a server', () => {
  it('logs nothing if every setting is safe', async () => {
    const { lines, open } = await monitored()
    const { problems } = open()
    await eventually(() => problems().size === 5)
    expect([...problems().values()]).toEqual([false, false, false, false, false])
    expect(lines).toEqual([])
  })

  it('logs each problem once with what was found and what is expected, and when it is corrected', async () => {
    const { admin, lines, open } = await monitored()
    const { problems } = open()
    await eventually(() => problems().size === 5)
    await admin.config('SET', 'maxmemory', '0')
    await admin.config('SET', 'hash-max-listpack-value', '64')
    await eventually(() => problems().get('maxmemory') && problems().get('listpack'))
    const rounds = await roundsOf(admin)
    await eventually(async () => (await roundsOf(admin)) > rounds + 2)
    expect(lines).toHaveLength(2)
    expect(lines).toContainEqual({
      level: 'warn',
      fields: { redis: expect.stringMatching(/^redis:/), check: 'listpack', found: '64', expected: '1024' },
      message: 'redis hash-max-listpack-value is small: waiting tasks take about twice the memory',
    })
    await admin.config('SET', 'hash-max-listpack-value', '1024')
    await eventually(() => problems().get('listpack') === false)
    expect(lines.at(-1)).toMatchObject({ level: 'info', fields: { check: 'listpack', found: '1024' } })
  })

  it('logs problems at the level info if that is its setting', async () => {
    const { admin, lines, open } = await monitored()
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
    open('info')
    await eventually(() => lines.length > 0)
    expect(lines).toMatchObject([{ level: 'info', fields: { check: 'eviction', found: 'allkeys-lru' } }])
  })

  it('says once that CONFIG GET is not permitted, and carries out the other checks', async () => {
    const { admin, lines, open } = await monitored({ user: '-config' })
    const { problems } = open()
    await eventually(() => problems().size > 0)
    const rounds = await roundsOf(admin)
    await eventually(async () => (await roundsOf(admin)) > rounds + 2)
    expect([...problems().keys()]).toEqual(['version', 'persistence', 'eviction', 'maxmemory'])
    expect(lines).toMatchObject([{ level: 'info', message: expect.stringContaining('CONFIG GET is not permitted') }])
  })

  it('says once that INFO is not permitted', async () => {
    const { lines, open } = await monitored({ user: '-info' })
    const { problems } = open()
    await eventually(() => problems().size > 0)
    expect([...problems().keys()]).toEqual(['listpack'])
    expect(lines).toMatchObject([{ level: 'info', message: expect.stringContaining('is not permitted') }])
  })
})

/** Returns how many rounds of checks have reached the server: each one sends CONFIG GET once, which may be refused. */
async function roundsOf(admin: Redis): Promise<number> {
  const stats = await admin.info('commandstats')
  const [, calls = 0, refused = 0] = /^cmdstat_config\|get:calls=(\d+),.*rejected_calls=(\d+)/m.exec(stats) ?? []
  return Number(calls) + Number(refused)
}
