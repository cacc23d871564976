// Tests that no connection is usable while Redis refuses to select the database of its URL.
import { randomUUID } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { bareConsumer } from '../bare-consumer.fixture.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { examineBullmq } from '../examination/examine.ts'

async function connect(urlOf: (url: string) => string) {
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  const lines: string[] = []
  const addresses: unknown[] = []
  const write = (fields: { readonly redis?: string }, line: string): void => {
    if ('check' in fields) return
    lines.push(line)
    addresses.push(fields.redis)
  }
  const log = { debug() {}, info: write, warn: write, error: write }
  const common = { redisUrl: urlOf(server.url), namespace: `t-${randomUUID().slice(0, 12)}`, log }
  const broker = openPatientBroker({ ...common, queues: ['rig'], sizeLimit: 10_000 })
  const consumer = bareConsumer({ ...common, queue: 'rig' })
  onTestFinished(async () => {
    await broker.close()
    await consumer.stop()
  })
  consumer.open().catch(() => {})
  const ping = () =>
    broker.ping().then(
      () => 'usable',
      ({ message }: Error) => message,
    )
  return { admin, lines, addresses, consumer, ping, redisUrl: common.redisUrl }
}

it('a database that the server does not have is named, and database 0 stays empty', async () => {
  const { admin, lines, addresses, consumer, ping, redisUrl } = await connect((url) => `${url}/99`)
  const expected =
    /Redis at redis:\/\/127.0.0.1:\d+\/99 does not have the database of the URL; correct the number at the end of the URL/
  expect(await eventually(async () => expected.test(await ping()) && (await ping()))).toMatch(expected)
  for (let i = 0; i < 20; i++) expect(await ping()).toMatch(expected)
  expect(consumer.notReady()).toMatch(expected)
  expect(lines).toEqual(['redis does not have the database of the URL'])
  expect(addresses).toEqual([redisUrl])
  expect(await admin.dbsize()).toBe(0)
})

it('a user without the permission for SELECT is named, and is connected once the user has it', async () => {
  const { admin, lines, ping, redisUrl } = await connect((url) => `${url.replace('://', '://ann:secret@')}/3`)
  const expected = /does not permit the user to select the database of the URL \(NOPERM\); add \+select/
  await eventually(() => lines.includes('redis refuses the user or the password'))
  await admin.acl('SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all', '-select')
  await eventually(async () => expected.test(await ping()))
  await expect(examineBullmq(redisUrl)).rejects.toMatchObject({ code: 'unauthorized' })
  expect(await admin.dbsize()).toBe(0)
  await admin.acl('SETUSER', 'ann', '+select')
  await eventually(async () => (await ping()) === 'usable')
  await eventually(() => lines.includes('redis connection restored'))
  await admin.select(0)
  expect(await admin.dbsize()).toBe(0)
})

it('a database that the server has is used', async () => {
  await expect(examineBullmq(`${inject('redisUrl')}/15`)).resolves.toBeDefined()
})
