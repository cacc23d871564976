// Tests the facts about servers from which a diagnosis is made.
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { factsOf, readServerFacts } from './server-facts.ts'

const INFO = [
  ...['redis_version:7.2.4', 'connected_clients:7', 'maxclients:10000', 'used_memory:500', 'maxmemory:1000'],
  ...['maxmemory_policy:noeviction', 'aof_enabled:1', 'aof_last_write_status:ok', 'rdb_last_bgsave_status:ok'],
]

it('the facts of a server are its settings, writes, connections and memory, and the time of a round trip', async () => {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const [server, ...others] = await readServerFacts(redis)
  expect(others).toEqual([])
  expect(server).toMatchObject({
    node: '',
    failedWrites: [],
    connections: { open: expect.any(Number), max: expect.any(Number) },
    memory: { usedBytes: expect.any(Number), limitBytes: expect.any(Number) },
    refused: [],
  })
  expect(server?.settings.get('version')).toMatchObject({ isOk: true })
  expect(server?.latencyMs).toBeGreaterThan(0)
})

/** Keeps Redis busy for 40 ms. */
const KEEP_BUSY = `
local function now() local time = redis.call('TIME') return time[1] * 1e6 + time[2] end
local ends = now() + 40000
repeat until now() >= ends`

it('the time of a round trip is that of most of them if another client keeps the server busy', async () => {
  const server = await privateRedis()
  await server.start()
  const [redis, other] = [new Redis(server.url), new Redis(server.url)]
  onTestFinished(() => redis.disconnect())
  let isBusy = true
  const busy = (async () => {
    while (isBusy) await other.eval(KEEP_BUSY, 0)
    other.disconnect()
  })()
  const [facts] = await readServerFacts(redis)
  isBusy = false
  await busy
  expect(facts?.latencyMs).toBeGreaterThan(10)
})

it.each([
  ['aof_last_write_status', 'the append-only file'],
  ['aof_last_bgrewrite_status', 'a rewrite of the append-only file'],
  ['rdb_last_bgsave_status', 'a snapshot'],
])('a failed write is reported by %s', (field, what) => {
  const lines = INFO.filter((line) => !line.startsWith(field))
  const info = [...lines, `${field}:err`].join('\r\n')
  expect(factsOf({ info, listpackValue: '1024' })).toMatchObject({
    failedWrites: [what],
    connections: { open: 7, max: 10_000 },
    memory: { usedBytes: 500, limitBytes: 1_000 },
    refused: [],
  })
})

it('the facts name the commands that a server does not permit, and lack what these commands read', () => {
  expect(factsOf({ info: undefined, listpackValue: undefined })).toEqual({
    settings: new Map(),
    ...{ memory: undefined, failedWrites: undefined, connections: undefined },
    refused: ['INFO', 'CONFIG GET'],
  })
  expect(factsOf({ info: INFO.join('\r\n'), listpackValue: undefined }).refused).toEqual(['CONFIG GET'])
})
