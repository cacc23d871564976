// Which servers are refused at the start, by their own answer to INFO.
import { expect, it } from 'vitest'
import { createSchemaGuard } from '../../schema.ts'
import type { Commander } from '../../scripts/script.ts'
import { unsupportedServer } from './server-version.ts'

const infoOf = (...lines: readonly string[]): string => ['# Server', ...lines, 'redis_mode:standalone', ''].join('\r\n')

it.each([
  ['Redis 7', infoOf('redis_version:7.0.0')],
  ['Redis 10', infoOf('redis_version:10.2.1')],
  ['Valkey', infoOf('redis_version:7.2.4', 'server_name:valkey', 'valkey_version:8.1.0')],
  ['a Valkey that is compatible with an older Redis', infoOf('redis_version:6.0.0', 'valkey_version:9.0.0')],
  ['a server that hides its version', infoOf()],
])('%s is accepted', (_name, info) => {
  expect(unsupportedServer(info)).toBeUndefined()
})

it('Redis 6 is refused with what was found and what is needed', () => {
  expect(unsupportedServer(infoOf('redis_version:6.2.14'))).toBe(
    'the server is Redis 6.2.14; Bullpen needs Redis 7 or later, or Valkey: upgrade the server or connect to another one',
  )
})

/** A server that answers INFO, and nothing that Bullpen has stored. */
function fakeRedis(info: () => Promise<string>) {
  const asked: string[] = []
  const redis = {
    info,
    async get(key: string) {
      asked.push(key)
      return null
    },
  } as unknown as Commander // Only the commands that come before a refusal.
  return { asked, guard: createSchemaGuard(redis, 'ns', ['q']) }
}

it('nothing is read or written on a server that is too old', async () => {
  const { asked, guard } = fakeRedis(async () => infoOf('redis_version:6.2.14'))
  await expect(guard.check()).rejects.toMatchObject({
    code: 'unsupported_redis',
    message: expect.stringContaining('Redis 6.2.14'),
  })
  expect(asked).toEqual([])
})

it('a user who may not run INFO is not kept from working', async () => {
  const { asked, guard } = fakeRedis(() =>
    Promise.reject(new Error("NOPERM this user has no permissions to run the 'info' command")),
  )
  await expect(guard.check()).rejects.not.toMatchObject({ code: 'unsupported_redis' })
  expect(asked).toEqual(['{ns}:schema'])
})

it('a connection error is not taken for a version', async () => {
  const { asked, guard } = fakeRedis(() => Promise.reject(new Error('Connection is closed.')))
  await expect(guard.check()).rejects.toThrow('Connection is closed.')
  expect(asked).toEqual([])
})
