// Checks that runs leave nothing behind but their records.
import type { RunId } from '@bullpen/contract'
import { type RunRef, runToken } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import type { BullmqBroker } from '../../broker/broker-options.ts'
import { queueKeys, runKeys, runsKey } from '../../keys.ts'
import { repeated } from '../repeated.fixture.ts'

export interface RemainsOptions {
  readonly redis: Redis
  readonly namespace: string
  readonly queues: readonly string[]
}

/** Expects that no task of a run that has ended waits or runs. */
export async function expectNoTasks({ redis, namespace, queues }: RemainsOptions, run: RunRef): Promise<void> {
  const tokens = [runToken(run, false), runToken(run, true)]
  for (const queue of queues) {
    const keys = queueKeys(namespace, queue)
    const places = [
      redis.lrange(keys.wait, 0, -1),
      redis.lrange(keys.active, 0, -1),
      redis.zrange(keys.delayed, '0', '-1'),
    ]
    for (const task of (await Promise.all(places)).flat()) {
      const [token] = (await redis.hget(keys.job(task), 'group'))?.split(' ') ?? []
      expect(tokens).not.toContain(token)
    }
  }
}

/** Expects that ended runs leave nothing but their records, which expire after `keepMs`. */
export async function expectOnlyRecords(
  { redis, namespace, queues }: RemainsOptions,
  { broker, ids, keepMs }: { readonly broker: BullmqBroker; readonly ids: readonly RunId[]; readonly keepMs: number },
): Promise<void> {
  // What is delivered is deleted afterwards, and the leader then forgets the run.
  await eventually(async () => (await redis.zcard(runsKey(namespace))) === 0)
  for (const queue of queues) await eventually(async () => (await redis.xlen(queueKeys(namespace, queue).outbox)) === 0)
  for (const id of ids) {
    const keys = runKeys(namespace, id)
    const record: readonly string[] = [keys.meta, keys.definition, keys.errors]
    const left = await keysLike(redis, `${keys.base}*`)
    expect(left.filter((key) => !record.includes(key))).toEqual([])
    for (const key of left) {
      const expiresInMs = await redis.pttl(key)
      expect(expiresInMs).toBeGreaterThan(0)
      expect(expiresInMs).toBeLessThanOrEqual(keepMs)
    }
  }
  for (const queue of queues) {
    const counts = await repeated(() => broker.counts(queue))
    expect(counts).toMatchObject({ waiting: 0, active: 0, scheduled: 0, retrying: 0 })
  }
  for (const queue of queues) {
    const { base } = queueKeys(namespace, queue)
    for (const key of await keysLike(redis, `${base}*`)) {
      if ((await redis.type(key)) === 'hash') expect((await redis.hget(key, 'lock')) ?? '', key).toBe('')
    }
  }
  expect((await repeated(() => broker.orphans.search())).orphans).toEqual([])
}

export async function keysLike(redis: Redis, pattern: string): Promise<readonly string[]> {
  const found: string[] = []
  for await (const page of redis.scanStream({ match: pattern, count: 1_000 })) found.push(...page)
  return found
}
