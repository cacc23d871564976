// Which settings of a server put tasks at risk.
import { describe, expect, it } from 'vitest'
import { checkServer, SERVER_CHECKS } from './server-checks.ts'

const SAFE = {
  redis_version: '7.2.4',
  aof_enabled: '1',
  maxmemory: '2000000000',
  maxmemory_policy: 'noeviction',
}
const infoOf = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')

const problemsOf = (fields: Readonly<Record<string, string>>, listpackValue?: string) =>
  [...checkServer({ info: infoOf(fields), listpackValue })].filter(([, { isOk }]) => !isOk)

describe('a server', () => {
  it('with safe settings passes every check', () => {
    const results = checkServer({ info: infoOf(SAFE), listpackValue: '1024' })
    expect([...results.keys()]).toEqual([...SERVER_CHECKS])
    expect([...results.values()].every(({ isOk }) => isOk)).toBe(true)
  })

  it.each([
    ['is too old', 'version', { redis_version: '6.2.14' }, '6.2.14', 'Redis 7 or later, or Valkey'],
    ['has no append-only file', 'persistence', { aof_enabled: '0' }, 'no', 'yes'],
    ['evicts any key', 'eviction', { maxmemory_policy: 'allkeys-lru' }, 'allkeys-lru', 'noeviction'],
    ['evicts keys that expire', 'eviction', { maxmemory_policy: 'volatile-ttl' }, 'volatile-ttl', 'noeviction'],
    ['has no limit', 'maxmemory', { maxmemory: '0' }, '0', 'a limit such as 2gb'],
  ])('that %s fails the check %s', (_title, check, fields, found, expected) => {
    expect(problemsOf({ ...SAFE, ...fields }, '1024')).toEqual([[check, { isOk: false, found, expected }]])
  })

  it('with a small hash-max-listpack-value fails the check listpack', () => {
    expect(problemsOf(SAFE, '64')).toEqual([['listpack', { isOk: false, found: '64', expected: '1024' }]])
  })

  it('that does not report a setting is not judged by it', () => {
    expect([...checkServer({ info: undefined, listpackValue: undefined })]).toEqual([])
    expect([...checkServer({ info: infoOf(SAFE), listpackValue: undefined }).keys()]).not.toContain('listpack')
  })
})
