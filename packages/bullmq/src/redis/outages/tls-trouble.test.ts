// Tests that a process says why TLS keeps it from using Redis, in one line of its log and in the errors of its callers.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { faultOfTlsFiles } from '@bullpen/contract/node'
import { privateRedis, type TlsFrontOptions, tlsFile, tlsFront } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openBroker } from '../../broker/broker.ts'
import { redis } from '../../client/redis-transport.ts'
import { addressIn, workerConnection } from '../../connection.ts'
import { examineBullmq } from '../../examination/examine.ts'
import { openFleet } from '../../fleet/fleet.ts'
import { silent } from '../../setup.fixture.ts'
import { renewalConnection } from '../renewal-connection.ts'
import { tlsMismatch } from './tls-trouble.ts'

const ca = `ca=${encodeURIComponent(tlsFile('ca.pem'))}`
const certificate = (name: 'client' | 'server', ownKey: 'client' | 'server' = name) =>
  `cert=${encodeURIComponent(tlsFile(`${name}.pem`))}&key=${encodeURIComponent(tlsFile(`${ownKey}.key`))}`

/** Opens a broker with a URL that is made of two ports: that of TLS in front of a Redis, and that of Redis itself. */
async function connect(urlOf: (tls: number, plain: number) => string, options?: TlsFrontOptions) {
  const server = await privateRedis()
  await server.start()
  const plain = Number(new URL(server.url).port)
  const redisUrl = urlOf(await tlsFront(plain, options), plain)
  const lines: string[] = []
  const write = (fields: object, line: string): void => {
    if (!('check' in fields)) lines.push(line)
  }
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const log = { debug() {}, info: write, warn: write, error: write }
  const broker = openBroker({ redisUrl, namespace, log, queues: ['rig'], sizeLimit: 10_000 })
  onTestFinished(() => broker.close())
  const ping = () =>
    broker.ping().then(
      () => 'usable',
      ({ message }: Error) => message,
    )
  return { lines, ping, redisUrl }
}

it.each<readonly [string, (tls: number, plain: number) => string, TlsFrontOptions, RegExp]>([
  [
    'a certificate of a CA that it does not trust',
    (tls) => `rediss://127.0.0.1:${tls}`,
    {},
    /has a certificate that is not trusted; set BULLPEN_REDIS_CA_FILE/,
  ],
  [
    'an expired certificate',
    (tls) => `rediss://127.0.0.1:${tls}?${ca}`,
    { cert: 'expired.pem' },
    /has a certificate that has expired or is not valid yet; renew it/,
  ],
  [
    'a certificate for another host name',
    (tls) => `rediss://localhost:${tls}?${ca}`,
    {},
    /has a certificate for another host name; use a host name from the certificate/,
  ],
  [
    'a server that demands a client certificate',
    (tls) => `rediss://127.0.0.1:${tls}?${ca}`,
    { demandsClientCertificate: true },
    /required a client certificate or refused this one; set BULLPEN_REDIS_CERT_FILE/,
  ],
  [
    'a port that requires TLS, without TLS',
    (tls) => `redis://127.0.0.1:${tls}`,
    {},
    /as if its port required TLS; check the port, or use rediss:\/\//,
  ],
])('with %s, errors name the reason, and one line is logged', async (_, urlOf, options, expected) => {
  const { lines, ping } = await connect(urlOf, options)
  expect(await eventually(async () => expected.test(await ping()) && (await ping()))).toMatch(expected)
  // Each connection has failed several times by now.
  for (let i = 0; i < 20; i++) expect(await ping()).toMatch(expected)
  expect(lines).toHaveLength(1)
})

it('the reason is named if a client with TLS connects to a port without TLS, even if the server never replies to the handshake', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.end('-ERR unknown command\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { lines, ping } = await connect(() => `rediss://127.0.0.1:${port}`)
  const expected = /as if its port did not use TLS; check the port, or use redis:\/\//
  await eventually(async () => expected.test(await ping()))
  expect(lines).toHaveLength(1)
  expect(tlsMismatch(true, false, new Error('connect ETIMEDOUT'))).toBe('no_tls')
  expect(tlsMismatch(false, false, new Error('connect ETIMEDOUT'))).toBeUndefined()
})

it.each([true, false])(
  'no reason is named if a server accepts the connection and sends nothing (with TLS: %s)',
  (usesTls) => {
    const silence = Object.assign(new Error('Redis sent nothing for 4000 ms'), { code: 'ETIMEDOUT' })
    expect(tlsMismatch(usesTls, true, silence)).toBeUndefined()
  },
)

it.each([
  ['a file that does not exist', { ca: '/none.pem' }, /ENOENT.*none\.pem/],
  ['a file without a certificate', { ca: tlsFile('client.key') }, /client\.key contains no certificate in PEM form/],
  ['the key of another certificate', { cert: tlsFile('client.pem'), key: tlsFile('server.key') }, /mismatch/],
])('every way to connect refuses %s before it connects, with the same message', async (_, files, why) => {
  const query = new URLSearchParams(files)
  const url = `rediss://127.0.0.1:1?${query.toString()}`
  const catalogue = defineCatalogue(defineTask({ name: 'a.b', queue: 'rig', input: z.object({}) }))
  const connection = { redisUrl: url, namespace: 't', queues: ['rig'], log: silent }
  const waysIn: Readonly<Record<string, () => unknown>> = {
    openBroker: () => openBroker({ ...connection, sizeLimit: 10_000 }),
    openFleet: () => openFleet(connection),
    workerConnection: () => workerConnection(url, silent),
    redis: () => redis(url, { catalogue }),
    examineBullmq: () => examineBullmq(url),
  }
  const expected = { code: 'invalid_configuration', message: faultOfTlsFiles(files) }
  expect(expected.message).toMatch(why)
  for (const [name, open] of Object.entries(waysIn)) {
    await expect.soft((async () => open())(), name).rejects.toMatchObject(expected)
  }
})

it('a connection that reads the files only when it connects, such as that of the lock thread, fails with the same message', async () => {
  const files = { ca: tlsFile('client.key') }
  const renewal = renewalConnection(addressIn(`rediss://127.0.0.1:1?${new URLSearchParams(files).toString()}`))
  onTestFinished(() => renewal.disconnect())
  expect(await once(renewal, 'error')).toMatchObject([{ message: faultOfTlsFiles(files) }])
})

it('the reason is named if a port that requires TLS refuses the connection with an alert of TLS', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.end(Buffer.from('15030100020246', 'hex')))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { ping, redisUrl } = await connect(() => `redis://127.0.0.1:${port}`)
  const expected = /as if its port required TLS; check the port, or use rediss:\/\//
  await eventually(async () => expected.test(await ping()))
  await expect(examineBullmq(redisUrl)).rejects.toMatchObject({ message: expect.stringMatching(expected) })
})

it.each<readonly [string, (tls: number, plain: number) => string, RegExp]>([
  [
    'a certificate that is not trusted',
    (tls) => `rediss://127.0.0.1:${tls}`,
    /has a certificate that is not trusted; set BULLPEN_REDIS_CA_FILE, or ca in the URL/,
  ],
  ['a port that requires TLS', (tls) => `redis://127.0.0.1:${tls}`, /as if its port required TLS; check the port, or/],
  ['a port without TLS', (_, plain) => `rediss://127.0.0.1:${plain}`, /as if its port did not use TLS; check the port/],
])('an examination and a program report %s with the same message', async (_, urlOf, expected) => {
  const { redisUrl, ping } = await connect(urlOf)
  const said = await eventually(async () => expected.test(await ping()) && (await ping()))
  await expect(examineBullmq(redisUrl)).rejects.toMatchObject({ code: 'redis_unavailable', message: said })
})

it('a certificate of a trusted CA and a required client certificate are accepted', async () => {
  const { ping } = await connect((tls) => `rediss://127.0.0.1:${tls}?${ca}&${certificate('client')}`, {
    demandsClientCertificate: true,
  })
  await eventually(async () => (await ping()) === 'usable')
})
