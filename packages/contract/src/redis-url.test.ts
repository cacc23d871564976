// Tests which Redis URLs are accepted, and what they mean.
import { describe, expect, it } from 'vitest'
import { readRedisUrl } from './redis-url.ts'

const cluster = { kind: 'cluster', tls: false, username: undefined, password: undefined } as const

describe('the URL of one server', () => {
  it.each(['redis://127.0.0.1:6379', 'rediss://ann:secret@db.example:6380/2'])('%s is passed on as it is', (url) => {
    expect(readRedisUrl(url)).toEqual({ kind: 'server', url })
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
      { nodes: [{ host: 'a', port: 1 }], tls: true, username: 'ann', password: 's@cret:x' },
    ],
    ['a password alone', 'redis+cluster://:secret@a:1', { nodes: [{ host: 'a', port: 1 }], password: 'secret' }],
  ])('names %s', (_, url, expected) => {
    expect(readRedisUrl(url)).toEqual({ ...cluster, ...expected })
  })
})

it.each([
  ['has no scheme', 'localhost:6379'],
  ['has another scheme', 'http://localhost:6379'],
  ['names several servers, but no cluster', 'redis://a:7000,b:7001'],
  ['names no node', 'redis+cluster://'],
  ['has an empty place in its list', 'redis+cluster://a:7000,,b:7001'],
  ['has a port above 65535', 'redis+cluster://a:70000'],
  ['has the port 0', 'redis+cluster://a:0'],
  ['names a database, which a cluster does not have', 'redis+cluster://a:7000/2'],
  ['has options', 'redis+cluster://a:7000?family=6'],
  ['repeats the scheme for a node', 'redis+cluster://a:7000,redis+cluster://b:7001'],
  ['has a broken escape in its password', 'redis+cluster://:%zz@a:7000'],
])('a URL that %s is not accepted', (_, url) => {
  expect(readRedisUrl(url)).toBeUndefined()
})
