// The search for orphans finds what belongs to nothing, and nothing else.
import { randomUUID } from 'node:crypto'
import type { Orphan } from '@bullpen/contract'
import type { Orphans } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { fleetKeys, leaderKeys, queueKeys } from '../keys.ts'
import { type SetupOptions, setup, short } from '../setup.fixture.ts'
import { createOrphanSearch } from './orphan-search.ts'

async function stage(options: SetupOptions = {}) {
  const rig = await setup(options)
  const redis = new Redis(rig.redisUrl)
  onTestFinished(() => redis.disconnect())
  const call = <T>(run: () => Promise<T>): Promise<T> => run()
  const orphans = createOrphanSearch({ redis, namespace: rig.namespace, call, recheckAfterMs: 20, leaderWithinMs: 40 })
  const keys = queueKeys(rig.namespace, 'rig')
  return { ...rig, redis, orphans, keys, fleet: fleetKeys(rig.namespace), leaderOf: leaderKeys(rig.namespace) }
}

type Stage = Awaited<ReturnType<typeof stage>>

async function findAll(orphans: Orphans): Promise<readonly Orphan[]> {
  const found: Orphan[] = []
  let cursor: string | undefined
  do {
    const page = await orphans.search(cursor)
    found.push(...page.orphans)
    cursor = page.next
  } while (cursor !== undefined)
  return found
}

const shown = (found: readonly Orphan[]): readonly string[] =>
  found.map(({ reason, kind = '', entry = '' }) => `${reason} ${kind} ${entry}`.trim()).toSorted()

const GONE = 'rig-00000000000000000000000000'

/** What is planted, and what the search then reports. */
const PLANTED: readonly (readonly [
  name: string,
  plant: (stage: Stage) => Promise<unknown>,
  found: readonly string[],
])[] = [
  [
    'a task that is in no list or set of its queue',
    ({ redis, keys }) => redis.hset(keys.job(GONE), 'name', 'rig.short', 'data', '{}'),
    ['no_owner <task>'],
  ],
  [
    'the lock of a task that is not active',
    ({ redis, keys }) => redis.set(keys.lock(GONE), 'token', 'PX', 60_000),
    ['no_owner <task>:lock'],
  ],
  ['the log of a removed task', ({ redis, keys }) => redis.rpush(keys.logs(GONE), 'line'), ['no_owner <task>:logs']],
  [
    'the children of a removed task',
    async ({ redis, keys }) => {
      await redis.sadd(keys.dependencies(GONE), 'child')
      await redis.hset(keys.processed(GONE), 'child', '1')
      await redis.hset(keys.ignoredFailures(GONE), 'child', '1')
      await redis.zadd(keys.unsuccessful(GONE), 1, 'child')
    },
    [
      'no_owner <task>:dependencies',
      'no_owner <task>:failed',
      'no_owner <task>:processed',
      'no_owner <task>:unsuccessful',
    ],
  ],
  [
    'a waiting list that names a missing task',
    ({ redis, keys }) => redis.lpush(keys.wait, GONE),
    [`no_owner wait ${GONE}`],
  ],
  [
    'sets that name a missing task',
    async ({ redis, keys }) => {
      const { prioritized, delayed, completed, failed, scheduled, dead, cancelled, expired } = keys
      for (const set of [prioritized, delayed, completed, failed, scheduled, dead, cancelled, expired]) {
        await redis.zadd(set, Date.now() + 3_600_000, GONE)
      }
      for (const set of [keys.stalled, keys.unrenewed]) await redis.sadd(set, GONE)
    },
    [
      'cancelled',
      'completed',
      'dead',
      'delayed',
      'expired',
      'failed',
      'prioritized',
      'scheduled',
      'stalled',
      'unrenewed',
    ].map((name) => `no_owner ${name} ${GONE}`),
  ],
  [
    'lanes that the queue does not name, and a named one without tasks',
    async ({ redis, keys }) => {
      await redis.rpush(keys.lane('one'), GONE)
      await redis.zadd(keys.lanePriorities('two'), 1, GONE)
      await redis.zadd(keys.lanes, 1, 'three')
    },
    ['no_owner lane-priorities:<lane>', 'no_owner lane:<lane>', 'no_owner lanes three'],
  ],
  [
    'lanes that wait with a need that the queue does not name, and a named one for which none waits',
    async ({ redis, keys }) => {
      await redis.zadd(keys.needWaiters('permits:db=3'), 1, 'one')
      await redis.zadd(keys.waitedNeeds, 0, 'permits:gpu=1')
    },
    ['no_owner need-waiters:<need>', 'no_owner waited-needs permits:gpu=1'],
  ],
  [
    'the tasks of a kind of error that does not exist',
    ({ redis, keys }) => redis.zadd(keys.fingerprint('0123456789abcdef'), 1, GONE),
    ['no_owner fingerprint:<fingerprint>'],
  ],
  [
    'a kind of error without tasks',
    ({ redis, keys }) => redis.hset(keys.fingerprints, '0123456789abcdef', '{}'),
    ['no_owner fingerprints 0123456789abcdef'],
  ],
  [
    'a request for dead tasks without its progress, and a progress that neither expires nor has a request',
    async ({ redis, keys }) => {
      await redis.hset(keys.deadRequests, 'other', '{}')
      await redis.hset(keys.deadProgress('r'), 'request', '{}')
    },
    ['no_owner dead-progress:<request>', 'no_owner dead-requests other'],
  ],
  [
    'a cancel rule without its progress, and a progress that neither expires nor has a rule',
    async ({ redis, keys }) => {
      await redis.hset(keys.cancelRules, 'other', '{}')
      await redis.hset(keys.cancelProgress('r'), 'rule', '{}')
    },
    ['no_owner cancel-progress:<rule>', 'no_owner cancel-rules other'],
  ],
  [
    'the state of a bulk cancel without a rule',
    async ({ redis, keys }) => {
      await redis.sadd(keys.cancelReturned, GONE)
      await redis.hset(keys.cancelPass, 'id', 'p')
    },
    ['no_owner cancel-pass', 'no_owner cancel-returned'],
  ],
  [
    'the time of a schedule that does not exist',
    ({ redis, keys }) => redis.zadd(keys.scheduleTimes, Date.now() + 3_600_000, 'nightly'),
    ['no_owner schedule-times nightly'],
  ],
  [
    'a job scheduler that is not in its set, and a member of the set without a job scheduler',
    async ({ redis, keys }) => {
      await redis.hset(keys.scheduler('one'), 'ic', 1)
      await redis.zadd(keys.repeat, 1, 'other')
    },
    ['no_owner repeat other', 'no_owner repeat:<scheduler>'],
  ],
  [
    'a deduplication id of a missing job, and the job to add after it',
    async ({ redis, keys }) => {
      await redis.set(keys.deduplication('one'), GONE)
      await redis.hset(keys.deduplicationNext('other'), 'name', 'x')
    },
    ['no_owner de:<deduplication id>', 'no_owner dn:<deduplication id>'],
  ],
  [
    'the status of a worker without a heartbeat',
    ({ redis, fleet }) => redis.hset(fleet.worker('host-1'), 'status', '{}'),
    ['no_owner fleet:worker:<worker>'],
  ],
]

describe('an orphan', () => {
  it.each(PLANTED)('is found and deleted: %s', async (_name, plant, expected) => {
    const rig = await stage({ leads: false })
    const { orphans } = rig
    await rig.enqueue(short)
    expect(await findAll(orphans)).toEqual([])
    await plant(rig)
    const found = await findAll(orphans)
    expect(shown(found)).toEqual(expected)
    expect(found.every(({ certain }) => certain)).toBe(true)
    expect(await orphans.delete(found)).toHaveLength(found.length)
    expect(await findAll(orphans)).toEqual([])
    expect(await rig.broker.counts('rig')).toMatchObject({ waiting: 1 })
  })

  it.each<readonly [name: string, plant: (stage: Stage) => Promise<unknown>, found: readonly string[]]>([
    ['a key of no known kind', ({ redis, keys }) => redis.set(`${keys.base}x:unheard-of`, '1'), ['unknown_key']],
    ['a key of another type', ({ redis, keys }) => redis.set(keys.expiries, '1'), ['wrong_type expiries']],
    [
      'a key that should expire and never will',
      ({ redis, keys }) => redis.set(keys.endReply('process'), '1'),
      ['no_expiry end-reply:<process>'],
    ],
    [
      'a key with the hash tag of a queue and another prefix',
      ({ redis, namespace }) => redis.set(`{${namespace}.rig}:other:wait`, '1'),
      ['unknown_key'],
    ],
    [
      'the keys of a queue that is not registered',
      async ({ redis, namespace }) => {
        await redis.rpush(queueKeys(namespace, 'elsewhere').wait, '1')
        await redis.hset(queueKeys(namespace, 'elsewhere').job('1'), 'name', 'x')
      },
      ['unknown_queue'],
    ],
  ])('that may belong to something is found and kept: %s', async (_name, plant, expected) => {
    const rig = await stage({ leads: false })
    await rig.enqueue(short)
    await plant(rig)
    const found = await findAll(rig.orphans)
    expect(shown(found)).toEqual(expected)
    expect(found.map(({ certain }) => certain)).toEqual([false])
    expect(await rig.orphans.delete(found)).toEqual([])
    expect(shown(await findAll(rig.orphans))).toEqual(expected)
  })

  it('of another namespace is not found, even if the name of that namespace begins with the same letters', async () => {
    const rig = await stage({ leads: false })
    await rig.redis.set(`{${rig.namespace}-2}:unheard-of`, '1', 'PX', 60_000)
    await rig.redis.set(`{${rig.namespace}-2.rig}:rig:unheard-of`, '1', 'PX', 60_000)
    expect(await findAll(rig.orphans)).toEqual([])
  })

  it('is not deleted if it has an owner by then', async () => {
    const rig = await stage({ leads: false })
    const id = await rig.enqueue(short)
    const { keys, orphans, redis } = rig
    const refs = [{ key: keys.job(id) }, { key: keys.wait, entry: id }, { key: keys.wait }, { key: 'elsewhere' }]
    expect(await orphans.delete(refs)).toEqual([])
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([id])
    expect(await redis.exists(keys.job(id))).toBe(1)
  })
})

describe('an entry that the leader deletes', () => {
  const plant = async ({ redis, keys }: Stage): Promise<void> => {
    await redis.hset(keys.uniqueKeys, 'rig.short:a', `${GONE} f`, 'rig.short:b', `${GONE} 1000`)
    await redis.zadd(keys.expiries, 1_000, GONE)
    await redis.hset(keys.cancelling, GONE, 'ann')
    await redis.hset(keys.scheduleTroubles, 'nightly', '{}')
  }

  it('is an orphan if the namespace has no leader', async () => {
    const rig = await stage({ leads: false })
    await rig.enqueue(short)
    await plant(rig)
    // These entries have an owner: a key that is kept until a time, and a queue timeout that has not passed.
    await rig.redis.hset(rig.keys.uniqueKeys, 'rig.short:c', `${GONE} ${Date.now() + 60_000}`)
    await rig.redis.zadd(rig.keys.expiries, Date.now() + 60_000, `${GONE}1`)
    const found = await findAll(rig.orphans)
    expect(shown(found)).toEqual([
      `no_owner cancelling ${GONE}`,
      `no_owner expiries ${GONE}`,
      'no_owner schedule-troubles nightly',
      'no_owner unique-keys rig.short:a',
      'no_owner unique-keys rig.short:b',
    ])
    await rig.orphans.delete(found)
    expect(await findAll(rig.orphans)).toEqual([])
    expect(await rig.redis.hkeys(rig.keys.uniqueKeys)).toEqual(['rig.short:c'])
  })

  it('is no orphan if a process becomes the leader meanwhile', async () => {
    const rig = await stage({ leads: false })
    await rig.enqueue(short)
    await plant(rig)
    const search = { redis: rig.redis, namespace: rig.namespace, call: <T>(run: () => Promise<T>) => run() }
    const orphans = createOrphanSearch({ ...search, recheckAfterMs: 1, leaderWithinMs: 500 })
    const finding = findAll(orphans)
    await rig.redis.set(rig.leaderOf.lease, 'another process', 'PX', 60_000)
    expect(await finding).toEqual([])
  })

  it('is deleted by the leader', async () => {
    const rig = await stage({ roundMs: 50 })
    await rig.enqueue(short)
    await eventually(() => rig.redis.exists(rig.leaderOf.lease))
    await plant(rig)
    expect(await findAll(rig.orphans)).toEqual([])
    await eventually(
      async () => (await rig.redis.exists(rig.keys.uniqueKeys, rig.keys.expiries, rig.keys.cancelling)) === 0,
    )
  })
})

describe('a search', () => {
  it('continues with its cursor until it has examined every key and entry', async () => {
    const rig = await stage({ leads: false })
    for (let i = 0; i < 300; i++) await rig.enqueue(short)
    const brief = { redis: rig.redis, namespace: rig.namespace, call: <T>(run: () => Promise<T>) => run() }
    const orphans = createOrphanSearch({ ...brief, examineMs: 0, recheckAfterMs: 1 })
    await rig.redis.set(rig.keys.lock(GONE), 'token')
    let pages = 0
    let examined = 0
    const found: Orphan[] = []
    for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
      const page = await orphans.search(cursor)
      found.push(...page.orphans)
      examined += page.examined
      cursor = page.next
    }
    expect(pages).toBeGreaterThan(10)
    // Each task is a key and an entry of the waiting list.
    expect(examined).toBeGreaterThan(600)
    expect(new Set(shown(found))).toEqual(new Set(['no_owner <task>:lock']))
  })

  it('that is aborted returns the cursor with which it began, so that nothing is missed', async () => {
    const rig = await stage({ leads: false })
    await rig.enqueue(short)
    await rig.redis.set(rig.keys.lock(GONE), 'token')
    const search = { redis: rig.redis, namespace: rig.namespace, call: <T>(run: () => Promise<T>) => run() }
    const abort = new AbortController()
    // The active tasks are read last, before the search waits to check again.
    const lrange = vi.spyOn(rig.redis, 'lrange')
    const waiting = createOrphanSearch({ ...search, recheckAfterMs: 60_000 }).search(undefined, abort.signal)
    await eventually(() => lrange.mock.calls.some(([list, , last]) => list === rig.keys.active && last === 999))
    abort.abort()
    const { orphans, examined, next } = await waiting
    expect({ orphans, examined }).toEqual({ orphans: [], examined: 0 })
    expect(shown((await rig.orphans.search(next)).orphans)).toEqual(['no_owner <task>:lock'])
    expect(await rig.orphans.search(undefined, abort.signal)).toMatchObject({ orphans: [], examined: 0, next })
  })

  it('rejects a cursor that is not one of its own', async () => {
    const { orphans } = await stage({ leads: false })
    await expect(orphans.search('nonsense')).rejects.toMatchObject({ code: 'invalid_cursor' })
  })

  it('sends only commands that take Redis a bounded time', async () => {
    const rig = await stage({ leads: false })
    await rig.enqueue(short)
    await rig.redis.ping()
    const sent = new Set<string>()
    const send = rig.redis.sendCommand.bind(rig.redis)
    rig.redis.sendCommand = (command, ...others) => {
      sent.add(command.name)
      return send(command, ...others)
    }
    await findAll(rig.orphans)
    // HKEYS reads the registry, which has one field for each queue.
    const bounded = ['eval', 'evalsha', 'exists', 'hkeys', 'hscan', 'lrange', 'scan', 'sscan', 'zscan']
    expect(bounded).toEqual(expect.arrayContaining([...sent]))
    expect(sent).toContain('scan')
  })

  it('finds nothing in a namespace that is not used', async () => {
    const { redis } = await stage({ leads: false })
    const call = <T>(run: () => Promise<T>): Promise<T> => run()
    expect(await findAll(createOrphanSearch({ redis, namespace: `t-${randomUUID().slice(0, 8)}`, call }))).toEqual([])
  })
})
