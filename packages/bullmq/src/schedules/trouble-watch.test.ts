// The leader logs when a schedule gets into trouble and when the trouble is over, once each, whichever process leads.
import { randomUUID } from 'node:crypto'
import { defineSchedule, defineTask, type Log } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { LEADER_TIMES } from '../leader/leader.ts'
import { createTroubleWatch } from './trouble-watch.ts'

const QUEUE = 'troubles'
const HOUR_MS = 3_600_000
const task = defineTask({ name: 'test.tick', queue: QUEUE, input: z.object({}) })
const yearly = (name: string) => defineSchedule({ name, task, input: {}, cron: '0 0 1 1 *' })

interface Line {
  readonly level: 'warn' | 'info'
  readonly schedule: unknown
  readonly trouble: unknown
  readonly message: string
}

/** Opens brokers that may lead, one after the other, and collects the lines that they log about schedules. */
function setup() {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, QUEUE)
  const lines: Line[] = []
  const collect =
    (level: Line['level']) =>
    (fields: object, message = ''): void => {
      const { schedule, trouble } = fields as Pick<Line, 'schedule' | 'trouble'>
      if (schedule !== undefined) lines.push({ level, schedule, trouble, message })
    }
  const log = { debug() {}, error() {}, warn: collect('warn'), info: collect('info') } as Log
  return {
    redis,
    keys,
    namespace,
    lines,
    open() {
      const leaderTimes = { ...LEADER_TIMES, roundMs: 100 }
      const common = { redisUrl, namespace, queues: [QUEUE], sizeLimit: 10_000, log }
      const broker = openPatientBroker({ ...common, leaderTimes, watchSchedulesEveryMs: 50 })
      onTestFinished(() => broker.close())
      return broker
    },
    /** Changes the stored record of a schedule. */
    async edit(name: string, change: object): Promise<void> {
      const stored = (await redis.hget(keys.schedules, name)) ?? ''
      const at = stored.indexOf(' ')
      const record = JSON.stringify({ ...JSON.parse(stored.slice(at)), ...change })
      await redis.hset(keys.schedules, name, `${stored.slice(0, at)} ${record}`)
    },
  }
}

test('each trouble is logged once when it begins and once when it is over, also after another process has taken over', async () => {
  const { redis, keys, lines, open, edit } = setup()
  const first = open()
  await eventually(() => first.ping().then(() => true))
  for (const name of ['fine', 'late', 'slow']) await first.schedules.put(yearly(name), { source: 'api', by: 'ann' })
  await edit('late', { missedAt: Date.now() - 1_000 })
  await edit('slow', { waiting: [1], overlap: 'queue', overlappingSince: Date.now() - 2 * HOUR_MS })
  await eventually(() => lines.length === 2)
  expect(lines).toEqual(
    expect.arrayContaining([
      {
        level: 'warn',
        schedule: 'late',
        trouble: 'missed',
        message: 'schedule is in trouble: a tick was missed, and no task was enqueued for it',
      },
      {
        level: 'warn',
        schedule: 'slow',
        trouble: 'overlapping',
        message:
          "schedule is in trouble: every tick of the last 2h found the previous run unfinished; overlap is 'queue'",
      },
    ]),
  )
  await eventually(async () => (await first.schedules.troubles(QUEUE)).overlapping === 1)
  expect(await first.schedules.troubles(QUEUE)).toEqual({ failing: 0, overlapping: 1, missed: 1, unreadable: 0 })
  await first.close()

  const second = open()
  await eventually(() => second.ping().then(() => true))
  await edit('late', { missedAt: undefined })
  await eventually(() => lines.length === 3)
  expect(lines[2]).toEqual({
    level: 'info',
    schedule: 'late',
    trouble: 'missed',
    message: 'schedule is no longer in trouble',
  })
  for (const name of ['fine', 'late', 'slow']) await second.schedules.remove(name)
  await eventually(() => lines.length === 4)
  expect(lines[3]).toMatchObject({ level: 'info', schedule: 'slow', trouble: 'overlapping' })
  await eventually(async () => (await redis.exists(keys.scheduleTroubles)) === 0)
})

test('a leader that another one has replaced stores nothing, and a queue is examined only as often as it is due', async () => {
  const { redis, keys, namespace, open, edit } = setup()
  const broker = open()
  await eventually(() => broker.ping().then(() => true))
  await broker.schedules.put(yearly('late'), { source: 'api', by: 'ann' })
  await broker.close()
  await edit('late', { missedAt: Date.now() })
  await redis.del(keys.scheduleTroubles)
  const newest = Number(await redis.get(keys.leader)) + 5
  await redis.set(keys.leader, newest)
  const begun: string[] = []
  const options = {
    redis,
    namespace,
    codec: undefined,
    now: Date.now,
    onBegun: (_: string, name: string) => void begun.push(name),
    onEnded() {},
  }
  const isOver = () => false
  await createTroubleWatch(options)(QUEUE, { fencing: newest - 1, isOver })
  expect(await redis.exists(keys.scheduleTroubles)).toBe(0)
  const watch = createTroubleWatch(options)
  await watch(QUEUE, { fencing: newest, isOver })
  expect(await redis.hkeys(keys.scheduleTroubles)).toEqual(['late'])
  await redis.del(keys.scheduleTroubles)
  await watch(QUEUE, { fencing: newest, isOver })
  expect(begun).toEqual(['late', 'late'])
})
