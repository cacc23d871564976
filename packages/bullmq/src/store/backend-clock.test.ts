// The times that BullMQ gets and stores: pools and a broker whose clock is an hour off this machine's, on a real Redis.
import { type TaskContext, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import type { RedisClient, RedisQueueBackend } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { queueKeys } from '../keys.ts'
import { long, type SetupOptions, setup } from '../setup.fixture.ts'
import { withScripts } from './backend.ts'

const HOUR = 3_600_000
/** What a busy machine may take between two readings of the clock. */
const CLOSE_MS = 60_000
/** BullMQ's scores: the time, with room for 4,096 jobs of the same millisecond. */
const SCORE = 0x1000

describe("times in answers are translated to the machine's clock", () => {
  const machineNow = 1_000_000_000_000
  const due = (offMs: number): number => machineNow + offMs + 500

  /** A backend whose fetch and markers answer as given. Without a time, the script reads Redis's clock. */
  function open(offMs: number, said: { readonly nextDue?: number; readonly score?: number; readonly time?: number }) {
    vi.spyOn(Date, 'now').mockReturnValue(machineNow)
    onTestFinished(() => void vi.restoreAllMocks())
    const sent: unknown[][] = []
    const client = {
      defineCommand() {},
      async runCommand(_: string, args: unknown[]) {
        sent.push(args)
        const moved = [0, [0, 0, 0, said.nextDue]]
        return said.time === undefined ? [moved] : [moved, [said.time, 0]]
      },
    } as unknown as RedisClient
    const made = {
      toKey: () => 'bull:q:',
      queue: { opts: {} },
      client: Promise.resolve(client),
      connection: { client: new Promise(() => {}) },
      execCommand: () => Promise.reject(new Error('the script is none of ours')),
      forQueue() {},
      readEvents() {},
      waitForJob: async () => (said.score === undefined ? null : { member: '0', score: said.score }),
      // Only the members of the backend that take or return times.
    } as unknown as RedisQueueBackend
    const now = said.time === undefined ? () => machineNow + offMs : undefined
    return { backend: withScripts(made, { now }), sent }
  }

  it.each([HOUR, -HOUR])('the next due job of a fetch, %i ms off', async (offMs) => {
    const { backend, sent } = open(offMs, { nextDue: due(offMs) })
    expect(await backend.moveToActive('token')).toEqual([null, 0, 0, due(0)])
    expect(sent[0]?.slice(0, 3)).toEqual(['bull:q:wait', 'bull:q:', machineNow + offMs])
  })

  it.each([HOUR, -HOUR])('the marker of a delayed job, %i ms off', async (offMs) => {
    const { backend } = open(offMs, { score: due(offMs) })
    expect(await backend.waitForJob(1)).toEqual({ member: '0', score: due(0) })
  })

  it.each([HOUR, -HOUR])('those of scripts that read Redis’s clock, %i ms off', async (offMs) => {
    const { backend, sent } = open(offMs, { time: machineNow + offMs, nextDue: due(offMs), score: due(offMs) })
    const [, , , nextDue] = await backend.moveToActive('token')
    const marker = await backend.waitForJob(1)
    for (const time of [nextDue, marker?.score]) expect(Math.abs(time - due(0))).toBeLessThan(CLOSE_MS)
    expect(sent[0]?.slice(0, 3)).toEqual(['bull:q:wait', 'bull:q:', ''])
  })

  it('an answer without a due time stays as it is', async () => {
    const { backend } = open(HOUR, { nextDue: 0, score: 0 })
    expect(await backend.moveToActive('token')).toEqual([null, 0, 0, 0])
    expect(await backend.waitForJob(1)).toEqual({ member: '0', score: 0 })
    expect(await open(HOUR, {}).backend.waitForJob(1)).toBeNull()
  })
})

async function clockOffBy(offMs: number, options: Omit<SetupOptions, 'now'> = {}) {
  const now = (): number => Date.now() + offMs
  const all = await setup({ ...options, now })
  const redis = new Redis(all.redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(all.namespace, 'rig')
  const isNow = (time: unknown): boolean => Math.abs(Number(time) - now()) < CLOSE_MS
  return { ...all, now, redis, keys, isNow }
}

describe.each([HOUR, -HOUR])("with Redis' clock %i ms from the machine's", (offMs) => {
  it('fetched and completed jobs are stamped by the given clock', async () => {
    const { enqueue, startPool, settled, redis, keys, isNow } = await clockOffBy(offMs)
    await startPool()
    const [first, second] = [await enqueue(long), await enqueue(long)]
    for (const id of [first, second]) {
      expect(await settled(id)).toMatchObject({ status: 'completed' })
      const { timestamp, processedOn, finishedOn } = await redis.hgetall(keys.job(id))
      expect([timestamp, processedOn, finishedOn].map(isNow)).toEqual([true, true, true])
      expect(isNow(await redis.zscore(keys.completed, id))).toBe(true)
    }
  })

  it('a delayed task starts when it is due on an idle pool', async () => {
    const startedAt: number[] = []
    const { enqueue, startPool, settled, now } = await clockOffBy(offMs, {
      handle: ({ input }) => {
        startedAt.push(now())
        return input
      },
    })
    await startPool()
    const dueAt = now() + 700
    const id = await enqueue(long, { delayMs: 700 })
    expect(await settled(id)).toMatchObject({ status: 'completed' })
    const [at = 0] = startedAt
    expect(at).toBeGreaterThanOrEqual(dueAt)
    expect(at).toBeLessThan(dueAt + CLOSE_MS)
  })

  it.each([
    ['a retry', () => Promise.reject(new TaskError('again', 'later', { retryAfter: '10m' }))],
    ['a snooze', async ({ snooze }: TaskContext<typeof long>) => snooze('10m')],
  ])('%s is due by it', async (_, handle) => {
    const { enqueue, startPool, redis, keys, now } = await clockOffBy(offMs, { handle })
    await startPool()
    const id = await enqueue(long)
    const score = await eventually(async () => Number(await redis.zscore(keys.delayed, id)))
    const dueIn = score / SCORE - now()
    expect(dueIn).toBeGreaterThan(600_000 - CLOSE_MS)
    expect(dueIn).toBeLessThanOrEqual(600_000)
  })

  it('neither a queue timeout nor a total timeout passes early', async () => {
    const { broker, enqueue, startPool, settled, now } = await clockOffBy(offMs)
    const limits = { queueMs: 60_000, totalMs: 60_000, expiresAt: now() + 60_000 }
    const id = await enqueue(long, limits)
    await startPool()
    expect(await settled(id)).toMatchObject({ status: 'completed' })
    expect((await broker.counts('rig')).waiting).toBe(0)
  })
})
