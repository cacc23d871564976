// Tests that a process says why it cannot use Redis: an unknown host, or a user or password that Redis refuses.
import { randomUUID } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { openBroker } from '../../broker/broker.ts'
import { troubleOf, troubleText } from './trouble.ts'

it.each([
  ['no password', '', /requires a password \(NOAUTH\); set it in the URL/, 'redis requires a password'],
  [
    'a wrong password',
    ':not-it@',
    /refuses the user or the password \(WRONGPASS\); correct them/,
    'redis refuses the user or the password',
  ],
])('with %s, errors name what Redis refuses, and one line is logged', async (_, login, expected, line) => {
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  await admin.config('SET', 'requirepass', 'secret')
  const written: unknown[] = []
  const write = (fields: object, message: string): void => void written.push([message, fields])
  const log: Log = { debug() {}, info: write, warn: write, error: write }
  const redisUrl = server.url.replace('redis://', `redis://${login}`)
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const broker = openBroker({ redisUrl, namespace, log, queues: ['rig'], sizeLimit: 10_000 })
  onTestFinished(() => broker.close())
  const error = await eventually(async () => {
    const thrown: Error | undefined = await broker.ping().then(
      () => undefined,
      (reason: Error) => reason,
    )
    return thrown !== undefined && expected.test(thrown.message) && thrown
  })
  expect(error).toMatchObject({ code: 'redis_unavailable' })
  expect(error.message).not.toContain('not-it')
  expect(written).toEqual([[line, { redis: server.url }]])
})

it.each(['ENOTFOUND', 'EAI_AGAIN'])('a host name without an address (%s) is named as the cause', (code) => {
  const trouble = troubleOf(Object.assign(new Error(`getaddrinfo ${code} db.example`), { code }))
  expect(trouble && troubleText('redis://db.example', trouble)).toBe(
    'Redis is not reachable at redis://db.example: the host name cannot be resolved; check the URL and the DNS',
  )
})

it('a blocking command that ends because its server has become a replica says so', () => {
  expect(troubleOf(new Error('UNBLOCKED force unblock from blocking operation, instance state changed'))).toBe(
    'read_only',
  )
})

it('a cluster client is asked for the error of the last node', () => {
  const lastNodeError = new Error('WRONGPASS invalid username-password pair or user is disabled.')
  const failed = Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError })
  expect(troubleOf(failed)).toBe('wrong_password')
  expect(troubleOf(new Error('WRONGTYPE'))).toBeUndefined()
})
