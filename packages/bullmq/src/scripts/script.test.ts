// Scripts run on a real Redis: keys and arguments by name, Redis that has lost the scripts, and the flags of each kind.
import { randomUUID } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { defineScript } from './define-script.fixture.ts'
import { runScript, type ScriptKind } from './script.ts'

const append = defineScript({
  name: 'test-append',
  kind: 'adds',
  keys: ['list', 'counter'],
  args: ['first', 'second'],
  lua: `
redis.call('RPUSH', list, first, second, unpack(ARGV, 3))
return { redis.call('INCR', counter), redis.call('LRANGE', list, 0, -1) }
`,
  answer(reply) {
    const [runs, items] = reply as [number, string[]]
    return { runs, items }
  },
})

function connect(url = inject('redisUrl')): Redis {
  const redis = new Redis(url)
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

function keysOf(name: string = randomUUID()) {
  return { list: `{${name}}:list`, counter: `{${name}}:counter` }
}

/** How often Redis ran a command since the last call. */
function callsOf(redis: Redis) {
  return async (command: string): Promise<number> => {
    const [, calls] = new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(await redis.info('commandstats')) ?? []
    return Number(calls ?? 0)
  }
}

describe('a script', () => {
  it('reads its keys and arguments by name, and further arguments after them', async () => {
    const redis = connect()
    const keys = keysOf()
    expect(await runScript(redis, append, keys, { second: 2, first: 'a' }, ['b', 'c'])).toEqual({
      runs: 1,
      items: ['a', '2', 'b', 'c'],
    })
  })

  it('is sent as text once for each connection, and then by its hash', async () => {
    const server = await privateRedis()
    await server.start()
    const redis = connect(server.url)
    const calls = callsOf(redis)
    for (let i = 0; i < 5; i++) await runScript(redis, append, keysOf('q'), { first: 'a', second: 'b' })
    expect([await calls('eval'), await calls('evalsha')]).toEqual([1, 4])
  })

  it('runs exactly once after SCRIPT FLUSH, also in a pipeline', async () => {
    // In the Redis that all tests share, a flush would make tests fail that cut off replies.
    const server = await privateRedis()
    await server.start()
    const redis = connect(server.url)
    const keys = keysOf()
    const args = { first: 'a', second: 'b' }
    await runScript(redis, append, keys, args)
    await redis.script('FLUSH')
    expect((await runScript(redis, append, keys, args)).runs).toBe(2)
    await redis.script('FLUSH')
    const answers = await Promise.all([runScript(redis, append, keys, args), runScript(redis, append, keys, args)])
    expect(answers.map(({ runs }) => runs).toSorted()).toEqual([3, 4])
  })

  it('runs after Redis was killed and started again', async () => {
    const server = await privateRedis()
    await server.start()
    const redis = connect(server.url)
    const keys = keysOf()
    const args = { first: 'a', second: 'b' }
    await runScript(redis, append, keys, args)
    await server.crash()
    await server.start()
    await eventually(() => redis.ping().then(() => true))
    expect((await runScript(redis, append, keys, args)).items.slice(-2)).toEqual(['a', 'b'])
  })
})

describe('in a full Redis', () => {
  async function runOnFull(kind: ScriptKind): Promise<{ readonly outcome: string; readonly written: string | null }> {
    const server = await privateRedis()
    await server.start()
    const redis = connect(server.url)
    const write = defineScript({
      name: `test-${kind}`,
      kind,
      keys: ['key'],
      args: [],
      lua: `redis.call('SET', key, 'x')`,
    })
    await redis.config('SET', 'maxmemory', '1')
    const outcome = await runScript(redis, write, { key: 'a' }, {}).then(
      () => 'ran',
      (err: Error) => err.message,
    )
    await redis.config('SET', 'maxmemory', '0')
    return { outcome, written: await redis.get('a') }
  }

  it('a script that frees memory runs', async () => {
    expect(await runOnFull('frees')).toEqual({ outcome: 'ran', written: 'x' })
  })

  it('a script that adds is refused before it has written anything', async () => {
    expect(await runOnFull('adds')).toEqual({ outcome: expect.stringContaining('OOM'), written: null })
  })
})

it('a script that only reads is not allowed to write', async () => {
  const write = defineScript({
    name: 'test-write',
    kind: 'reads',
    keys: ['key'],
    args: [],
    lua: `redis.call('SET', key, 'x')`,
  })
  await expect(runScript(connect(), write, { key: randomUUID() }, {})).rejects.toThrow('Write commands are not allowed')
})
