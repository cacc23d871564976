// A real Redis that refuses writes for a while: what callers, probes and the log say, and that work goes on afterwards.
import type { BullpenError, Log } from '@bullpen/contract'
import { privateCluster, privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis, ReplyError } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { long, setup } from '../../setup.fixture.ts'
import { hadNoEffect } from '../not-sent.ts'
import { ERROR_REPLIES, errorCode, isRefusedForNow } from './error-replies.ts'
import { isConnectionError } from './outage-reporter.ts'

const TOO_FEW = 'refuses writes, because fewer replicas are connected than min-replicas-to-write requires (NOREPLICAS)'

async function rig(redisUrl: string) {
  const lines: string[] = []
  const write = (fields: object, message: string): void => void ('check' in fields || lines.push(message))
  const log: Log = { debug() {}, info: write, warn: write, error: write }
  return { ...(await setup({ redisUrl, log })), lines }
}

const rejection = (call: Promise<unknown>): Promise<BullpenError | undefined> =>
  call.then(
    () => undefined,
    (error: BullpenError) => error,
  )

/** Starts a server, and returns how to make it refuse writes and accept them again. */
async function server() {
  const redis = await privateRedis()
  await redis.start()
  const admin = new Redis(redis.url)
  onTestFinished(() => admin.disconnect())
  return {
    url: redis.url,
    refuse: () => admin.config('SET', 'min-replicas-to-write', '1'),
    accept: () => admin.config('SET', 'min-replicas-to-write', '0'),
    admin,
  }
}

async function cluster() {
  const { url, nodes, end } = await privateCluster()
  onTestFinished(end)
  const set = (replicas: string) =>
    Promise.all(nodes.map((node) => node.ask('CONFIG', 'SET', 'min-replicas-to-write', replicas)))
  return { url, refuse: () => set('1'), accept: () => set('0') }
}

describe.each([
  ['a single server', server],
  ['a cluster', cluster],
])('%s that lacks replicas', (kind, open) => {
  it('is reported to callers, to probes and in one log line, and tasks run again afterwards', async () => {
    const redis = await open()
    const { broker, startPool, enqueue, settled, lines } = await rig(redis.url)
    const pool = await startPool()
    expect(pool.notReady()).toBeUndefined()
    await redis.refuse()
    expect((await eventually(() => rejection(broker.ping()))).message).toContain(TOO_FEW)
    const error = await rejection(enqueue(long))
    expect(error).toMatchObject({ code: 'redis_unavailable', message: expect.stringContaining(TOO_FEW) })
    // A cluster's client may send a command several times.
    if (kind === 'a single server') expect(error).toMatchObject({ hadNoEffect: true })
    await eventually(() => pool.notReady()?.includes(TOO_FEW))
    await redis.accept()
    await eventually(() => broker.ping().then(() => true))
    await eventually(() => pool.notReady() === undefined)
    expect(await settled(await eventually(() => enqueue(long)))).toMatchObject({ status: 'completed' })
    expect(lines).toEqual([`redis ${TOO_FEW}`, 'redis connection restored'])
  })
})

it('a full Redis does not count as one that refuses writes', async () => {
  const { url, admin } = await server()
  const { broker } = await rig(url)
  await admin.config('SET', 'maxmemory', '1')
  await expect(broker.ping()).resolves.toBeUndefined()
})

const reply = (message: string): Error => new ReplyError(message)

describe('an error with which Redis or Valkey replies', () => {
  it.each(Object.entries(ERROR_REPLIES))('%s says whether the command was refused for now', (code, { means }) => {
    const error = reply(`${code} some text.`)
    expect(errorCode(error)).toBe(code)
    expect(isRefusedForNow(error)).toBe(means === 'not_now')
    const rejected = Object.assign(new Error(), { code: 'redis_unavailable', cause: error, hadNoEffect: false })
    expect(hadNoEffect(rejected as never)).toBe(means === 'not_now')
  })

  it.each(['BUSYKEY Target key name already exists.', 'BUSYGROUP x', 'ERR no such key', 'constructor x', 'OOM'])(
    '%s says nothing about the server if its code is another one',
    (message) => {
      expect(errorCode(reply(message))).toBeUndefined()
      expect(isConnectionError(reply(message))).toBe(false)
    },
  )
})
