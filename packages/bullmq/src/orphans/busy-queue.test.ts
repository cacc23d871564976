// While tasks are added, run, fail, are retried, cancelled, replaced and removed, and while workers start, drain and die, a search
// finds no orphans. It checks again at once, so that it would report what has no owner for only a moment.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Orphan, TaskId } from '@bullpen/contract'
import { amount, privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { workerConnection } from '../connection.ts'
import { leaderKeys, queueKeys } from '../keys.ts'
import { long, setup, short, silent } from '../setup.fixture.ts'
import { createOrphanSearch } from './orphan-search.ts'

const cluster = await privateCluster()
afterAll(() => cluster.end())

/** How many searches find nothing. */
const SEARCHES = amount({ small: 2, full: 6 })
/** How many tasks may wait. */
const BACKLOG = 300
const FAILS = 3

describe.each([
  ['a single server', () => inject('redisUrl')],
  ['a cluster', () => cluster.url],
])('a busy queue on %s', (_, url) => {
  it('has no orphans', async () => {
    const redisUrl = url()
    const rig = await setup({
      redisUrl,
      roundMs: 50,
      concurrency: 8,
      retention: { completed: { count: 3 }, dead: { count: 20 }, cancelled: { count: 0 }, expired: { ageMs: 200 } },
      async handle({ input, signal }) {
        if (input.n % FAILS === 0) throw new Error(`broken ${input.n % 7}`)
        // Only long tasks have a signal.
        if (input.n % 10 === 5) await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return input
      },
    })
    const { broker, enqueue, startPool, namespace } = rig
    const redis = workerConnection(redisUrl, silent)
    onTestFinished(() => redis.disconnect())
    const call = <T>(run: () => Promise<T>): Promise<T> => run()
    const orphans = createOrphanSearch({ redis, namespace, call, recheckAfterMs: 0 })
    // Without a leader, the search would wait for one.
    await eventually(() => redis.exists(leaderKeys(namespace).lease))
    let isOver = false
    let added = 0
    const ids: TaskId[] = []
    const pick = (): TaskId | undefined => ids[Math.floor(Math.random() * ids.length)]
    const unique = { key: 'k', until: 'finished', onConflict: 'replace', maxDelayMs: undefined } as const

    const work: readonly (() => Promise<unknown>)[] = [
      async () => {
        const n = added++
        if (n % 20 === 0) await eventually(async () => isOver || (await broker.counts('rig')).waiting < BACKLOG)
        const task = n % 2 === 0 ? short : long
        ids.push(
          await enqueue(task, {
            input: { n },
            maxAttempts: 1 + (n % 3),
            ...(n % 4 === 0 && { delayMs: n % 200 }),
            ...(n % 6 === 0 && { priority: n % 10 }),
            ...(n % 7 === 0 && { unique }),
            ...(n % 11 === 0 && { expiresAt: Date.now() + (n % 50), delayMs: 0 }),
          }),
        )
        if (ids.length > 200) ids.shift()
      },
      async () => {
        const id = pick()
        if (id !== undefined) await broker.cancel(id, { stoppable: true })
      },
      async () => {
        const id = pick()
        if (id !== undefined) await broker.retry(id, { request: `${Math.random()}`, by: 'ann' })
      },
      async () => {
        const id = pick()
        if (id !== undefined) await broker.deleteDead(id)
      },
      async () => {
        const next = added + 50
        await eventually(() => isOver || added >= next)
        await broker.cancelMany({ queue: 'rig', task: 'rig.long', before: Date.now(), reason: 'cancelled' })
      },
    ]
    const working = work.flatMap((act) =>
      Array.from({ length: 2 }, async () => {
        while (!isOver) {
          await act()
          await nextTurn()
        }
      }),
    )
    const replacing = (async () => {
      await startPool()
      while (!isOver) {
        const next = await startPool()
        await eventually(() => added > 0)
        await next.drain({ drainMs: 20, graceMs: 20, hurry: new AbortController().signal })
      }
    })()
    const end = async (): Promise<void> => {
      isOver = true
      await Promise.all([...working, replacing])
    }
    onTestFinished(end)
    const found: Orphan[] = []
    let examined = 0
    for (let i = 0; i < SEARCHES; i++) {
      let cursor: string | undefined
      do {
        const page = await orphans.search(cursor)
        found.push(...page.orphans)
        examined += page.examined
        cursor = page.next
      } while (cursor !== undefined)
    }
    await end()
    expect(found).toEqual([])
    expect(examined).toBeGreaterThan(SEARCHES * 20)
    expect((await broker.totals('rig')).removed).toBeGreaterThan(0)
  })
})

it('keys on every node of a cluster are examined, and those without an owner deleted', async () => {
  const redis = workerConnection(cluster.url, silent)
  onTestFinished(() => redis.disconnect())
  const queues = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const namespace = `t-${Math.random().toString(36).slice(2, 10)}`
  const broker = openPatientBroker({
    redisUrl: cluster.url,
    namespace,
    queues,
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const nodes = await Promise.all(queues.map((queue) => cluster.nodeOf(`{${namespace}.${queue}}`)))
  expect(new Set(nodes).size).toBe(3)
  const locks = queues.map((queue) => queueKeys(namespace, queue).lock('gone'))
  await Promise.all(locks.map((lock) => redis.set(lock, 'token', 'PX', 60_000)))
  await redis.zadd(queueKeys(namespace, 'c').failed, 1, 'gone')
  const call = <T>(run: () => Promise<T>): Promise<T> => run()
  const orphans = createOrphanSearch({ redis, namespace, call, recheckAfterMs: 20 })
  const { orphans: found } = await orphans.search()
  const entry = { key: queueKeys(namespace, 'c').failed, entry: 'gone' }
  expect(found.map(({ key }) => key).toSorted()).toEqual([...locks, entry.key].toSorted())
  expect(await orphans.delete(found)).toHaveLength(9)
  expect((await orphans.search()).orphans).toEqual([])
})
