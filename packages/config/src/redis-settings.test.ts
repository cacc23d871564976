// Tests the settings of Redis: the faults of its URL, the files for TLS, and the addresses that programs listen on.
import { readRedisUrl } from '@bullpen/contract/internal'
import { tlsFile } from '@bullpen/testing'
import { describe, expect, it } from 'vitest'
import { REDIS_RULES, REDIS_SETTINGS, redisUrlOf } from './redis-settings.ts'
import { listeningHost } from './setting-types.ts'
import { readSettings } from './settings.ts'

const read = (env: Record<string, string>) =>
  readSettings('API', REDIS_SETTINGS, REDIS_RULES, { argv: [], env, readFile: () => '{}' })

it.each([
  ['redis://:SECRET%zz@a', 'the percent encoding of its password is not valid'],
  ['redis://:SECRET@a/abc', 'its path is not the number of a database'],
  ['redis://:SEC/RET@a', 'its host is missing or not valid'],
])('the fault of %s is named, and no part of the URL', (url, fault) => {
  expect(() => read({ REDIS_URL: url })).toThrow(
    expect.objectContaining({
      code: 'invalid_configuration',
      message: expect.stringMatching(
        new RegExp(`^invalid configuration: REDIS_URL is not valid; expected .*; ${fault}`),
      ),
    }),
  )
  expect(() => read({ REDIS_URL: url })).toThrow(expect.objectContaining({ message: expect.not.stringMatching(/SEC/) }))
})

describe('the files for TLS', () => {
  const files = {
    BULLPEN_REDIS_CA_FILE: tlsFile('ca.pem'),
    BULLPEN_REDIS_CERT_FILE: tlsFile('client.pem'),
    BULLPEN_REDIS_KEY_FILE: tlsFile('client.key'),
  }

  it('become options of the URL', () => {
    const address = readRedisUrl(redisUrlOf(read({ REDIS_URL: 'rediss://a', ...files })))
    const { BULLPEN_REDIS_CA_FILE: ca, BULLPEN_REDIS_CERT_FILE: cert, BULLPEN_REDIS_KEY_FILE: key } = files
    expect(address).toMatchObject({ host: 'a', tls: { ca, cert, key } })
  })

  it.each([
    [
      'without TLS',
      { REDIS_URL: 'redis://a', ...files },
      /cannot be combined with redisUrl.*require TLS, as in rediss:\/\//,
    ],
    [
      'without a key',
      { ...files, BULLPEN_REDIS_KEY_FILE: '' },
      /cannot be combined with redisUrl.*cert and key must be given together/,
    ],
    [
      'that are also in the URL',
      { REDIS_URL: 'rediss://a?ca=x', ...files },
      /cannot be combined with redisUrl.*the same option twice/,
    ],
    ['that do not exist', { ...files, BULLPEN_REDIS_CA_FILE: '/none.pem' }, /cannot be used.*ENOENT.*none\.pem/],
    ['that do not belong together', { ...files, BULLPEN_REDIS_KEY_FILE: tlsFile('server.key') }, /key values mismatch/],
  ])('%s are refused', (_, env, message) => {
    expect(() => read({ REDIS_URL: 'rediss://a', ...env })).toThrow(message)
  })
})

it.each([
  ['[::1]', '::1'],
  ['::', '::'],
  ['0.0.0.0', '0.0.0.0'],
  ['my-host.example', 'my-host.example'],
])('a program can listen on %s', (given, host) => {
  expect(listeningHost.schema.parse(given)).toBe(host)
})

it.each(['', '127.0.0.1:8080', 'http://a', 'a b', '[::1]:8080', '::zz'])(
  '%j is not an address to listen on',
  (given) => {
    expect(listeningHost.schema.safeParse(given).success).toBe(false)
  },
)
