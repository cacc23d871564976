// Tests the settings of Redis: the faults of its URL, the files for TLS, and the addresses that programs listen on.
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRedisUrl } from '@bullpen/contract/internal'
import { faultOfTlsFiles } from '@bullpen/contract/node'
import { tlsFile } from '@bullpen/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { REDIS_RULES, REDIS_SETTINGS, redisUrlOf } from './redis-settings.ts'
import { listeningHost } from './setting-types.ts'
import { readSettings } from './settings.ts'

const read = (env: Record<string, string>) =>
  readSettings('API', REDIS_SETTINGS, REDIS_RULES, { argv: [], env, readFile: () => '{}' })

const FILE_SETTINGS = ['BULLPEN_REDIS_CA_FILE', 'BULLPEN_REDIS_CERT_FILE', 'BULLPEN_REDIS_KEY_FILE'] as const

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'bullpen-pem-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

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

  it('are refused with the same message as by a client over Redis, and with the names of the settings', () => {
    const fault = faultOfTlsFiles({ ca: '/none.pem' }) ?? ''
    const env = { REDIS_URL: 'rediss://a', BULLPEN_REDIS_CA_FILE: '/none.pem' }
    expect(() => read(env)).toThrow(
      `invalid configuration: ${fault}; redisCaFile (BULLPEN_REDIS_CA_FILE), redisCertFile`,
    )
  })

  const pem = readFileSync(tlsFile('ca.pem'), 'utf8')
  const der = new X509Certificate(pem).raw
  const [key, cut] = [readFileSync(tlsFile('client.key')), pem.slice(0, 200)]
  const CONTENTS = {
    empty: '',
    garbage: 'garbage',
    der,
    key,
    cut,
    'cut later': pem + cut,
    damaged: pem.replace('MII', 'MIJ'),
  }

  it.each(
    Object.entries(CONTENTS).flatMap(([name, content]) =>
      ([...FILE_SETTINGS, 'ca'] as const).map((setting) => [setting, name, content] as const),
    ),
  )('%s may not be %s', (setting, name, content) => {
    if (setting === 'BULLPEN_REDIS_KEY_FILE' && name === 'key') return
    const path = join(directory(), 'x.pem')
    writeFileSync(path, content)
    const env =
      setting === 'ca' ? { REDIS_URL: `rediss://a?ca=${path}` } : { REDIS_URL: 'rediss://a', ...files, [setting]: path }
    expect(() => read(env)).toThrow(/^invalid configuration: the files for TLS with Redis cannot be used/)
  })

  it.each([pem, pem + pem, `subject=x\n${pem}`, pem.replaceAll('\n', '\r\n'), pem.replaceAll(' CERT', ' X509 CERT')])(
    'the certificates of CAs are accepted in each form that OpenSSL reads',
    (content) => {
      const path = join(directory(), 'x.pem')
      writeFileSync(path, content)
      expect(read({ REDIS_URL: 'rediss://a', BULLPEN_REDIS_CA_FILE: path })).toMatchObject({ redisCaFile: path })
    },
  )
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
