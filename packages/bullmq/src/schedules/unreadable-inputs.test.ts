// Schedules whose input a process cannot decode: they are listed and controlled, and they do not affect the other schedules.
import { randomUUID } from 'node:crypto'
import { defineSchedule, defineTask } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import { troublesOf } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { LEADER_TIMES } from '../leader/leader.ts'
import { silent } from '../setup.fixture.ts'

const QUEUE = 'ticks'
const task = defineTask({ name: 'test.tick', queue: QUEUE, input: z.object({ n: z.int() }) })
const yearly = (name: string, n = 1) => defineSchedule({ name, task, input: { n }, cron: '0 0 1 1 *' })
const API = { source: 'api', by: 'ann' } as const

/** Encodes as hexadecimal digits, and cannot decode anything else. */
const HEX: PayloadCodec = {
  encode: (text) => Buffer.from(text).toString('hex'),
  decode(text) {
    if (!/^[0-9a-f]+$/.test(text)) throw new Error('wrong key')
    return Buffer.from(text, 'hex').toString()
  },
}
/** Does not notice that a text was encoded by another codec. */
const CARELESS: PayloadCodec = { encode: (text) => `"${text}"`, decode: (text) => text }

const lines: { readonly schedule: unknown; readonly trouble: unknown; readonly message: string | undefined }[] = []

async function open(namespace: string, codec: PayloadCodec | undefined, leads = false) {
  const warn = (fields: object, message?: string): void => {
    const { schedule, trouble } = fields as { readonly schedule?: unknown; readonly trouble?: unknown }
    if (schedule !== undefined) lines.push({ schedule, trouble, message })
  }
  const log = { ...silent, warn: warn as typeof silent.warn }
  const leaderTimes = { ...LEADER_TIMES, roundMs: 100 }
  const common = { redisUrl: inject('redisUrl'), namespace, sizeLimit: 10_000, log, leaderTimes, leads, codec }
  const broker = openPatientBroker({ ...common, queues: [QUEUE], watchSchedulesEveryMs: 50 })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  return broker
}

/** A process with another codec than the one that stored the schedule `sealed`, which is among two that it can read. */
async function withSealed(codec: PayloadCodec | undefined = undefined) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const owner = await open(namespace, HEX)
  await owner.schedules.put(yearly('sealed'), API)
  const other = await open(namespace, codec)
  for (const name of ['after', 'plain']) await other.schedules.put(yearly(name), API)
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const stored = async () => (await redis.hget(queueKeys(namespace, QUEUE).schedules, 'sealed')) ?? ''
  return { namespace, owner, stored, redis, keys: queueKeys(namespace, QUEUE), ...other }
}

test('a schedule whose input cannot be decoded is listed with the others, without its input and with the reason', async () => {
  const { schedules } = await withSealed()
  const all = await schedules.list()
  expect(all.map(({ record }) => record.name)).toEqual(['after', 'plain', 'sealed'])
  const sealed = await schedules.find('sealed')
  expect(sealed.record.template).not.toHaveProperty('input')
  expect(troublesOf(sealed)).toEqual([
    {
      kind: 'unreadable',
      since: sealed.record.changedAt,
      detail:
        'the input cannot be decoded, so no task is enqueued: the value was encoded by a codec, but this process has no codec',
    },
  ])
  expect(all.slice(0, 2).flatMap(troublesOf)).toEqual([])
})

test('the reason does not quote a text that the wrong codec has returned', async () => {
  const { schedules } = await withSealed(CARELESS)
  const [trouble] = troublesOf(await schedules.find('sealed'))
  expect(trouble?.detail).toMatch(/: what the codec has decoded is not JSON$/)
})

test('a pause and a resume keep an input that cannot be decoded, and a process with the codec reads it again', async () => {
  const { schedules, owner } = await withSealed(CARELESS)
  expect((await schedules.pause('sealed', 'ann')).record.paused).toMatchObject({ by: 'ann' })
  const read = await owner.schedules.find('sealed')
  expect(read.record).toMatchObject({ template: { input: { n: 1 } }, paused: { by: 'ann' } })
  expect(read.record).not.toHaveProperty('unreadableInput')
  await schedules.resume('sealed', 'ann')
  expect((await owner.schedules.run('sealed')).state.record).toMatchObject({ runs: 1 })
})

test('a schedule whose input cannot be decoded is deleted, replaced and synced, but not run', async () => {
  const { schedules, owner } = await withSealed()
  await expect(schedules.run('sealed')).rejects.toMatchObject({
    code: 'unreadable_payload',
    message: expect.stringContaining('store the schedule again'),
  })
  expect(await schedules.put(yearly('sealed', 2), API)).toMatchObject({ action: 'changed' })
  expect((await schedules.find('sealed')).record).toMatchObject({ template: { input: { n: 2 } } })
  await owner.schedules.put(yearly('sealed', 3), API)
  const sync = (dryRun: boolean) => schedules.sync([yearly('sealed', 3)], { by: 'deploy', dryRun })
  expect(await sync(true)).toMatchObject([{ action: 'changed', fields: [{ field: 'input', to: { n: 3 } }, {}] }])
  await sync(false)
  expect((await schedules.find('sealed')).record).toMatchObject({ template: { input: { n: 3 } } })
  await owner.schedules.put(yearly('sealed', 4), API)
  await schedules.remove('sealed')
  expect((await schedules.list()).map(({ record }) => record.name)).toEqual(['after', 'plain'])
})

test('a leader that cannot decode an input reports it, and still runs the other schedules that are due', async () => {
  const { namespace, schedules, redis, keys } = await withSealed()
  for (const name of ['sealed', 'plain']) {
    const [token = '', ...text] = ((await redis.hget(keys.schedules, name)) ?? '').split(' ')
    const at = Date.now() - 1_000
    const record = {
      ...JSON.parse(text.join(' ')),
      cadence: { everyMs: 3_600_000, offsetMs: 0 },
      cursor: at - 1,
      next: at,
    }
    await redis.hset(keys.schedules, name, `${token} ${JSON.stringify(record)}`)
    await redis.zadd(keys.scheduleTimes, at, name)
  }
  await open(namespace, undefined, true)
  await eventually(async () => (await schedules.find('plain')).record.runs === 1)
  await eventually(async () => (await schedules.troubles(QUEUE)).unreadable === 1)
  expect((await schedules.find('sealed')).record.runs).toBe(0)
  expect(lines).toMatchObject([
    { schedule: 'sealed', trouble: 'unreadable', message: expect.stringContaining('cannot be decoded') },
  ])
})
