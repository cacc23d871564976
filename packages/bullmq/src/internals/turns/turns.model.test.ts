// Lanes and limiters under random operations on a real Redis. After each operation, the invariants of the lanes hold:
//
// 1. A task is in one place (../index-model/full-scan.fixture.ts).
// 2. A lane that has a task is named in `lanes`, and either takes turns or is blocked.
// 3. The number of tasks in lanes is counted correctly.
// 4. If a task could start from a lane, an idle worker wakes.
// 5. A task with a lane waits nowhere else.
// 6. The active tasks of each key are counted correctly, no script starts more of them than the limit allows, and only
//    a lane whose key has reached its limit is blocked.
// 7. A throttled key starts no task.
// 8. What the active tasks hold of each limiter is counted correctly, and no script starts a task that needs more than
//    is left. A lane that waits for a limiter could not start, and the first one in each line has been woken or is
//    refused elsewhere. Services, whose breakers are opened and closed, are such limiters, except that the next fetch
//    lets the lanes return that wait for an open one.
// 9. The head of the queue counts the tasks in blocked lanes, and names one that starts next if there is one.
//
// At the end of each program, every task ends, each key's tasks start in the order in which they were added, and
// nothing is left behind.
import { randomUUID } from 'node:crypto'
import type { BreakerMode, TaskId } from '@bullpen/contract'
import { BREAKER_MODES, DEFAULT_BREAKER } from '@bullpen/contract/internal'
import type { Need } from '@bullpen/engine'
import { amount, privateRedis } from '@bullpen/testing'
import { Worker } from 'bullmq'
import fc from 'fast-check'
import { type Redis, ReplyError } from 'ioredis'
import { expect, it } from 'vitest'
import { defineBreakers } from '../../breakers/stored-breaker.ts'
import { applySettings } from '../../fleet/queue-settings.ts'
import type { QueueKeys } from '../../keys.ts'
import { expireTasks } from '../../leader/expirer.ts'
import { takeLock, unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { runnerOn, runScript } from '../../scripts/script.ts'
import { backendFactory } from '../../store/backend.ts'
import { countActiveScript, throttleKeyScript } from '../../store/scripts.ts'
import { modelTask } from '../index-model/model-task.fixture.ts'
import { OPERATIONS } from '../index-model/operations.fixture.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { openWorld, type World } from '../index-model/world.fixture.ts'
import { CAPACITY_SETTING, capacitySetting, KEY_LIMIT_SETTING, keyLimitSettings } from './key-limits.ts'
import { idsInLanes, laneViolations } from './lane-scan.fixture.ts'
import { programsOf, type Step } from './random-steps.fixture.ts'
import { setLimits } from './set-limits.fixture.ts'

const PROGRAMS = { small: 2, full: 300 }
const STEPS = { small: 120, full: 400 }

const HOUR = 3_600_000

type Operation = (world: World, pick: number, n: number) => unknown

const LIMITERS = ['permits:db', 'permits:gpu', 'task:model.task', 'task:model.other', 'service:smtp'] as const
const [db, gpu, cap, other, smtp] = LIMITERS.map((limiter) => (amount: number) => ({ limiter, amount }))
const NEEDS: readonly (readonly Need[])[] = [
  ...[
    [],
    [],
    [],
    [db?.(1)],
    [db?.(3)],
    [db?.(2), gpu?.(2)],
    [gpu?.(1)],
    [gpu?.(1), other?.(1)],
    [cap?.(1)],
    [cap?.(1), db?.(2)],
    [smtp?.(1)],
    [gpu?.(1), smtp?.(1)],
  ],
  [other?.(1)],
].map((needs) => needs.filter((need) => need !== undefined))

/** Most tasks have one of four keys. Some wait for an hour, some for a moment, and some have a priority. */
const add: Operation = ({ broker }, pick, n) => {
  const turn = n % 5 === 0 ? undefined : { key: `key ${n % 5}`, weight: [1, 3, 0.5][n % 3] ?? 1 }
  const given = {
    ...{ maxAttempts: 3, turn, needs: NEEDS[pick % NEEDS.length] },
    priority: pick % 4 === 0 ? 1 + (n % 3) : 0,
    delayMs: pick % 7 === 0 ? HOUR : pick % 7 === 1 ? n % 5 : undefined,
    expiresAt: pick % 11 === 0 ? Date.now() + (n % 50) : undefined,
  }
  return broker.enqueue(modelTask(n, given))
}

const addAll: Operation = ({ broker }, _, n) =>
  broker.enqueueAll([0, 1, 2].map((i) => modelTask(n, { turn: { key: `key ${(n + i) % 3}`, weight: 1 }, priority: i })))

/** What an idle worker does: it waits for a marker, and then fetches. */
const fetch: Operation = async (world) => {
  const [member] = await world.redis.zpopmin(world.keys.marker)
  return member === '0' ? world.fetch('bullpen') : false
}

/** The candidates of the worker that runs only some tasks. Its tasks end when they are found to be lost. */
const candidates = new WeakMap<World, { ids: readonly TaskId[]; readonly worker: Worker }>()

/** A worker that runs only some tasks fetches one of them. */
const fetchSome: Operation = async (world, pick, n) => {
  let own = candidates.get(world)
  if (own === undefined) {
    const given = { next: () => own?.ids ?? [], fetched() {}, returned() {}, noneWaits: async () => true, stop() {} }
    const options = { connection: world.redis, prefix: world.queue.opts.prefix ?? '', autorun: false }
    const backend = backendFactory({ now: Date.now, candidates: given })
    own = { ids: [], worker: new Worker(QUEUE, async () => {}, { ...options, skipStalledCheck: true }, backend) }
    candidates.set(world, own)
  }
  const ids = await idsInLanes(world.redis, world.keys)
  own.ids = ids.filter((_, i) => (i + pick) % (1 + (n % 4)) === 0) as TaskId[]
  await own.worker.getNextJob('some', { block: false })
}

/** Ends the tasks whose queue timeout has passed, as the leader does. */
const expire: Operation = ({ redis, keys }) =>
  expireTasks(redis, keys, { fencing: 1, now: Date.now, process: 'model', caller: 'model', onExpired() {} })

/** BullMQ refuses, and pauses the queue. */
const obliterate: Operation = async ({ redis, keys, queue }) =>
  (await redis.llen(keys.active)) > 0 && queue.obliterate()

/** Idle workers fetch everything that can start. Then nothing wakes a worker until something happens. */
const fetchAll: Operation = async (world) => {
  for (let member: string | undefined = '0'; member === '0'; ) {
    ;[member] = await world.redis.zpopmin(world.keys.marker)
    await world.fetch('bullpen')
  }
}

/** Ends an attempt whose lock another worker has taken, so that Redis refuses the end. */
const refuse: Operation = async ({ redis, keys, end }, pick, n) => {
  const refused = ['completed', 'retrying', 'snoozed', 'requeued'] as const
  const kind = refused[n % refused.length] ?? 'completed'
  return end(
    pick,
    () => {
      if (kind === 'completed') return { kind, output: { n } }
      return kind === 'requeued' ? { kind, throttleMs: undefined } : { kind, delayMs: 5 }
    },
    async () => 'done',
    (id) => takeLock(redis, keys, id, 5_000),
  )
}

const cancel: Operation = async ({ redis, keys, broker }, pick) => {
  const ids = await idsInLanes(redis, keys)
  const id = ids[pick % Math.max(1, ids.length)]
  return id !== undefined && broker.cancel(id as TaskId, { stoppable: true })
}

/** Sets or removes the limit of all keys or of one key. */
const limit: Operation = ({ redis, keys }, pick, n) => {
  const key = pick % 3 === 0 ? undefined : `key ${n % 5}`
  const concurrency = n % 4 === 0 ? 'none' : key === undefined ? 1 + (n % 3) : n % 4
  // Some keys start no task after their burst, and some a task every few milliseconds.
  const rate = n % 3 === 0 ? ('none' as const) : { max: n % 3 === 1 ? 1 : 1_000_000, perMs: HOUR, burst: 1 + (n % 4) }
  return setLimits(redis, keys, keyLimitSettings(pick % 2 === 0 ? { concurrency } : { rate }, key))
}

/** Sets or removes the capacity of a limiter. That of a service depends on its circuit breaker. */
const setCapacity: Operation = ({ redis, keys }, pick, n) => {
  const limiter = LIMITERS[n % LIMITERS.length] ?? 'permits:db'
  const capacity = pick % 5 === 0 ? 'none' : pick % 5
  if (limiter === 'service:smtp') return setService(redis, keys, BREAKER_MODES[pick % 3] ?? 'auto')
  return setLimits(redis, keys, capacitySetting(limiter, pick % 10 === 1 ? 0 : capacity))
}

/** Tasks of a half-open breaker start no more than a few times. */
const BREAKER = { ...DEFAULT_BREAKER, probes: 2, openMs: HOUR, maxOpenMs: HOUR }

let commands = 0

const setService = async (redis: Redis, keys: QueueKeys, to: BreakerMode): Promise<void> => {
  await defineBreakers(runnerOn(redis), keys, { smtp: BREAKER }, { replaces: true })
  const spec = { action: 'breaker', queue: QUEUE, service: 'smtp', to } as const
  await applySettings(redis, keys, { id: 'c', spec, by: 'model', sequence: `${++commands}`, at: 0 })
}

const unlimited = async (redis: Redis, keys: QueueKeys): Promise<void> => {
  await setService(redis, keys, 'closed')
  const settings = await redis.hkeys(keys.settings)
  const limits = settings.filter((name) => name.startsWith(KEY_LIMIT_SETTING) || name.startsWith(CAPACITY_SETTING))
  // As if the throttles had ended. Without limits, the next fetches look at each lane.
  await redis.del(keys.keyThrottles)
  for (const key of await redis.zrange(keys.laneTimes, '0', '-1')) await redis.zadd(keys.laneTimes, 1, key)
  await setLimits(
    redis,
    keys,
    limits.flatMap((name) => [name, '']),
  )
}

/** Throttles the key of an active task, for a moment or for the rest of the program. */
const throttle: Operation = async ({ redis, keys }, pick, n) => {
  const ids = await redis.lrange(keys.active, 0, -1)
  const id = ids[pick % Math.max(1, ids.length)]
  const args = { base: keys.base, duration: n % 2 === 0 ? HOUR : n % 20 }
  return id !== undefined && (await runScript(redis, throttleKeyScript, { job: keys.job(id) }, args)) === 1
}

/** What the leader does from time to time. Nothing is wrong, because every script keeps the counts. */
const countAgain: Operation = async ({ redis, keys }) =>
  expect(await runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })).toBe(0)

/** Removes a task's data, as another tool might. */
const lose: Operation = async ({ redis, keys }, pick) => {
  const ids = await idsInLanes(redis, keys)
  const id = ids[pick % Math.max(1, ids.length)]
  return id !== undefined && redis.del(keys.job(id))
}

const operation = (name: string): Operation => OPERATIONS[name] ?? expect.fail(`there is no operation '${name}'`)

const ALL: Readonly<Record<string, readonly [weight: number, Operation]>> = {
  'add a task': [12, add],
  'add several tasks': [2, addAll],
  fetch: [12, fetch],
  'fetch all': [2, fetchAll],
  'fetch some': [3, fetchSome],
  complete: [5, operation('complete a task')],
  kill: [1, operation('end a task as dead')],
  requeue: [2, operation('requeue a task')],
  release: [2, operation('release a task')],
  snooze: [2, operation('snooze a task')],
  retry: [2, operation('retry a task later')],
  refuse: [2, refuse],
  'lose a worker': [2, operation('lose a task')],
  cancel: [1, cancel],
  expire: [1, expire],
  'delete the data': [1, lose],
  promote: [1, operation('promote a task')],
  'retry a dead task': [1, operation('retry a dead task')],
  'retry all dead tasks': [1, operation('retry all dead tasks')],
  'remove a task': [1, operation('remove a task in a lane')],
  'change a priority': [1, operation('change the priority of a task in a lane')],
  clean: [1, ({ queue }, pick, n) => queue.clean(0, 1 + (n % 3), pick % 2 === 0 ? 'wait' : 'prioritized')],
  limit: [3, limit],
  throttle: [1, throttle],
  'set a capacity': [4, setCapacity],
  'count again': [1, countAgain],
  obliterate: [1, obliterate],
  pause: [1, ({ queue }) => queue.pause()],
  resume: [2, ({ queue }) => queue.resume()],
}

/**
 * BullMQ refuses some operations, for example because a job is not there any more. No script may fail, and no
 * expectation.
 */
function onlyIfRefused(error: unknown): void {
  if (error instanceof ReplyError || (error instanceof Error && error.name === 'AssertionError')) throw error
}

/** Fetches and completes tasks until none is left. A worker that finds nothing to do waits for a marker. */
async function finish(world: World): Promise<void> {
  const { queue, redis, keys, fetch: take, end } = world
  await queue.resume()
  await queue.promoteJobs()
  // A key with the limit 0 starts nothing.
  await unlimited(redis, keys)
  for (;;) {
    while (
      await end(
        1,
        () => ({ kind: 'completed', output: { n: 1 } }),
        async () => 'done',
      )
    );
    // The attempts whose ends were refused.
    for (const id of await redis.lrange(keys.active, 0, -1)) await unlockTasks(redis, keys, id)
    await world.checkForLost()
    const [member] = await redis.zpopmin(keys.marker)
    if (member !== undefined) {
      await take('bullpen')
      continue
    }
    // No task is left for which a worker should have woken. The fetch deletes what is stored about turns.
    expect(await take('bullpen')).toBe(false)
    return
  }
}

it('a task that waits in a lane is in one place, is counted and starts, after random operations', {
  timeout: 1_200_000,
}, async () => {
  const server = await privateRedis()
  await server.start()
  const run = async (steps: readonly Step[]): Promise<void> => {
    const world = await openWorld(server.url, `t-${randomUUID().slice(0, 12)}`, { leads: false })
    const { redis, keys } = world
    const active = new Map<string, number>()
    try {
      for (const [i, { name, pick, n }] of steps.entries()) {
        await Promise.resolve(ALL[name]?.[1](world, pick, n)).catch(onlyIfRefused)
        const found = await laneViolations(redis, keys, { before: active })
        if (found.length > 0) throw new Error(`after step ${i} (${name}): ${found.join('; ')}`)
      }
      await finish(world)
      expect(await world.broker.counts(QUEUE)).toMatchObject({ waiting: 0, active: 0 })
      expect(await redis.keys(`${keys.base}lane*`)).toEqual([])
      const { turns, turnState, blockedLanes, laneTimes, activeByKey, inUse, waitedNeeds, keyPasses } = keys
      expect(await redis.exists(turns, turnState, blockedLanes, laneTimes, activeByKey, inUse)).toBe(0)
      expect(await redis.exists(waitedNeeds, keyPasses)).toBe(0)
      expect(await redis.keys(`${keys.base}need-waiters*`)).toEqual([])
    } finally {
      await candidates.get(world)?.worker.close(true)
      await world.close()
    }
  }
  await fc.assert(fc.asyncProperty(programsOf(ALL, STEPS), run), {
    numRuns: amount(PROGRAMS),
    endOnFailure: true,
  })
})
