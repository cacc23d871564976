// Tests which Redis URLs are accepted, and what they mean.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readRedisUrl, withTlsFiles } from './redis-url.ts'

const cluster = { kind: 'cluster', tls: undefined, username: undefined, password: undefined } as const

const server = { ...cluster, kind: 'server', port: 6379, database: 0, family: 0 } as const

describe('the URL of one server', () => {
  it.each([
    ['redis://127.0.0.1', { host: '127.0.0.1' }],
    ['REDIS://my_redis:6379/\n', { host: 'my_redis' }],
    ['redis://[::1]:6380/15?family=6', { host: '::1', port: 6380, database: 15, family: 6 }],
    [
      'rediss://ann:s%40cret@db.example:6380/2?ca=%2Fetc%2Fca.pem&cert=c.pem&key=k.pem',
      {
        ...{ host: 'db.example', port: 6380, database: 2, username: 'ann', password: 's@cret' },
        tls: { ca: '/etc/ca.pem', cert: 'c.pem', key: 'k.pem' },
      },
    ],
    ['redis://:p@ss:word@a', { host: 'a', password: 'p@ss:word' }],
  ])('%j names its parts', (url, expected) => {
    expect(readRedisUrl(url)).toEqual({ ...server, ...expected })
  })

  it('is read as the parts from which it was written', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 }).filter((value) => value.isWellFormed())
    fc.assert(
      fc.property(
        text,
        text,
        fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()),
        fc.integer({ min: 1, max: 65_535 }),
        fc.nat({ max: 999 }),
        (username, password, host, port, database) => {
          const login = [username, password].map(encodeURIComponent).join(':')
          const place = host.includes(':') ? `[${host}]` : host
          expect(readRedisUrl(`redis://${login}@${place}:${port}/${database}`)).toEqual({
            ...server,
            ...{ username, password, host, port, database },
          })
        },
      ),
    )
  })

  it('has the files that are added to it as options', () => {
    const url = withTlsFiles('rediss://a/1?family=4', { ca: '/a b/&?.pem', cert: 'c', key: 'k' })
    expect(readRedisUrl(url)).toEqual({
      ...server,
      ...{ host: 'a', database: 1, family: 4, tls: { ca: '/a b/&?.pem', cert: 'c', key: 'k' } },
    })
    expect(withTlsFiles('redis://a', { ca: undefined })).toBe('redis://a')
  })
})

describe('the URL of a cluster', () => {
  it.each([
    ['one node', 'redis+cluster://a.example:7000', { nodes: [{ host: 'a.example', port: 7000 }] }],
    [
      'several nodes, the usual port and a final slash',
      'redis+cluster://a,10.0.0.2:7001/',
      {
        nodes: [
          { host: 'a', port: 6379 },
          { host: '10.0.0.2', port: 7001 },
        ],
      },
    ],
    ['an IPv6 address', 'redis+cluster://[::1]:7000', { nodes: [{ host: '::1', port: 7000 }] }],
    [
      'TLS, a user and a password with escaped characters',
      'rediss+cluster://ann:s%40cret:x@a:1',
      { nodes: [{ host: 'a', port: 1 }], tls: {}, username: 'ann', password: 's@cret:x' },
    ],
    ['a password alone', 'redis+cluster://:secret@a:1', { nodes: [{ host: 'a', port: 1 }], password: 'secret' }],
  ])('names %s', (_, url, expected) => {
    expect(readRedisUrl(url)).toEqual({ ...cluster, ...expected })
  })
})

it.each([
  ['has no scheme', 'localhost:6379', 'it does not begin with a known scheme'],
  ['has another scheme', 'http://localhost:6379', 'it does not begin with a known scheme'],
  ['is empty', '', 'it does not begin with a known scheme'],
  ['contains a blank', 'redis://a b:6379', 'it contains a space or a line break'],
  ['contains a line break', 'redis://a\nb', 'it contains a space or a line break'],
  ['has no host', 'redis://:6379', /^its host is missing/],
  ['has a path alone', 'redis:///1', /^its host is missing/],
  ['names several servers, but no cluster', 'redis://a:7000,b:7001', /^its host is missing or not valid/],
  ['has an IPv6 address without brackets', 'redis://::1:6379', /^its host is missing or not valid; put an IPv6/],
  ['has a wrong IPv6 address', 'redis://[::1::2]:6379', 'its host is not an IPv6 address'],
  ['has the port 0', 'redis://a:0', 'its port is not a number from 1 to 65535'],
  ['has a port above 65535', 'redis://a:65536', 'its port is not a number from 1 to 65535'],
  ['has a port that is no number', 'redis://a:port', /^its host is missing or not valid/],
  ['has a word as its database', 'redis://a/abc', 'its path is not the number of a database'],
  ['has a negative database', 'redis://a/-1', 'its path is not the number of a database'],
  ['has a longer path', 'redis://a/1/', 'its path is not the number of a database'],
  ['has an encoded path', 'redis://a/%31', 'its path is not the number of a database'],
  ['has a broken escape in its password', 'redis://:pa%zz@a', 'the percent encoding of its password is not valid'],
  ['has broken UTF-8 in its user', 'redis://%ff:x@a', 'the percent encoding of its user is not valid'],
  ['has a user without a password', 'redis://ann@a', 'it has a user without a password'],
  ['has a raw slash in its password', 'redis://:a/b@c', /^its host is missing or not valid/],
  ['has a raw number sign in its password', 'redis://:a#b@c', /contains '#', which must be written as %23/],
  ['has another option', 'redis://a?db=3', 'its query has an option other than family, ca, cert and key'],
  ['has an option of objects', 'redis://a?__proto__=3', /^its query has an option other/],
  ['has an option twice', 'redis://a?family=4&family=6', 'its query has the same option twice'],
  ['has an option without a value', 'rediss://a?ca=', 'its query has an invalid value'],
  ['has another family', 'redis://a?family=5', 'its family is not 0, 4 or 6'],
  ['names a CA without TLS', 'redis://a?ca=x', 'ca, cert and key require TLS, as in rediss://'],
  ['has a certificate without its key', 'rediss://a?cert=x', 'cert and key must be given together'],
  ['names no node', 'redis+cluster://', /^its host is missing/],
  ['has an empty place in its list', 'redis+cluster://a:7000,,b:7001', /^its host is missing/],
  ['has a node with a wrong port', 'redis+cluster://a:70000', 'its port is not a number from 1 to 65535'],
  [
    'names a database of a cluster',
    'redis+cluster://a:7000/2',
    'a cluster has only database 0, so the URL has no path',
  ],
  ['has a family for a cluster', 'redis+cluster://a:7000?family=6', 'family is not an option of a cluster'],
  ['repeats the scheme for a node', 'redis+cluster://a:7000,redis+cluster://b:7001', /^its host is missing/],
  ['has a broken escape in a cluster', 'redis+cluster://:%zz@a:7000', /percent encoding of its password/],
])('a URL that %s is not accepted', (_, url, fault) => {
  const read = readRedisUrl(url)
  expect(read.kind === 'invalid' ? read.fault : read).toEqual(
    typeof fault === 'string' ? fault : expect.stringMatching(fault),
  )
})

it('any text is either a valid URL or has a fault that repeats no part of the text', () => {
  const piece = fc.constantFrom(
    'redis',
    'rediss',
    '+cluster',
    '://',
    ':',
    '@',
    '/',
    '?',
    '#',
    '%',
    '%41',
    '[',
    ']',
    ' ',
    ',',
    'SECRET',
    '7',
    '=',
    '&',
  )
  fc.assert(
    fc.property(fc.array(piece), fc.boolean(), (pieces, hasScheme) => {
      const read = readRedisUrl(`${hasScheme ? 'redis://' : ''}${pieces.join('')}`)
      if (read.kind === 'invalid') expect(read.fault).not.toMatch(/SECRET|7|%41/)
    }),
    { numRuns: 2_000 },
  )
})
