// The fuzz's operations that users request of single tasks and of many: cancels, retries, deletes, schedules and commands.
import { defineSchedule, type TaskId } from '@bullpen/contract'
import { BREAKER_MODES, type CommandSpec, DEFAULT_BREAKER } from '@bullpen/contract/internal'
import { expect } from 'vitest'
import { defineBreakers } from '../../../breakers/stored-breaker.ts'
import { pool, status } from '../../../fleet/fleet.fixture.ts'
import { runnerOn, runScript } from '../../../scripts/script.ts'
import { acknowledgeRuleScript, readRulesScript } from '../../../store/scripts.ts'
import { QUEUE, task } from '../../index-model/worker.fixture.ts'
import { defineLimits } from '../../turns/key-limits.ts'
import type { FuzzWorld } from '../fuzz-world.fixture.ts'
import { at, type FuzzOperation, type FuzzOperations } from '../operation.fixture.ts'

const BY = 'ann'
const COUNTED = { matching: 0, exact: true }

/** Numbers the requests and commands. */
let requests = 0

/** A request of a dead task, which may be of any status by then. */
const onDead =
  (act: (world: FuzzWorld, id: TaskId, n: number) => unknown): FuzzOperation =>
  async (world, pick, n) => {
    const id = at(await world.redis.zrange(world.keys.failed, 0, '-1'), pick)
    return id !== undefined && act(world, id as TaskId, n)
  }

/** A consumer that reads the rules, and closes. */
const readRules: FuzzOperation = async ({ redis, keys }) => {
  await runScript(redis, readRulesScript, keys, { consumer: 'model', silence: 60_000 })
  for (const id of await redis.hkeys(keys.cancelRules))
    await runScript(
      redis,
      acknowledgeRuleScript,
      { known: keys.cancelKnown(id) },
      { consumer: 'model', keepMs: 10_000 },
    )
  return redis.zrem(keys.cancelConsumers, 'model')
}

const SLOW = { max: 1, per: '1h', burst: 2 }
/** Most remove a limit, so that the queue does not come to a standstill. */
const COMMANDS: readonly CommandSpec[] = [
  { action: 'pause', queue: QUEUE },
  { action: 'resume', queue: QUEUE },
  { action: 'resume', queue: QUEUE },
  { action: 'resume', queue: QUEUE },
  { action: 'limit', queue: QUEUE, concurrency: 4 },
  { action: 'limit', queue: QUEUE, concurrency: 'none' },
  { action: 'limit', queue: QUEUE, concurrency: 'none' },
  { action: 'limit', queue: QUEUE, rate: { max: 5, per: '20ms' } },
  { action: 'limit', queue: QUEUE, rate: 'none' },
  { action: 'limit', queue: QUEUE, rate: 'none' },
  { action: 'limit', queue: QUEUE, concurrencyPerKey: 2 },
  { action: 'limit', queue: QUEUE, concurrencyPerKey: 'none' },
  { action: 'limit', queue: QUEUE, ratePerKey: SLOW },
  { action: 'limit', queue: QUEUE, ratePerKey: 'none' },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 1', concurrency: 0 },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 1', concurrency: 'none' },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 2', rate: SLOW },
  { action: 'limit', queue: QUEUE, concurrencyKey: 'key 2', rate: 'none' },
  { action: 'limit', queue: QUEUE, permits: { db: 3 } },
  { action: 'limit', queue: QUEUE, permits: { db: 1, gpu: 0 } },
  { action: 'limit', queue: QUEUE, permits: { db: 'none', gpu: 'none' } },
  { action: 'limit', queue: QUEUE, task: task.name, concurrency: 2 },
  { action: 'limit', queue: QUEUE, task: task.name, concurrency: 'none' },
  { action: 'limit', queue: QUEUE, maxTasks: 20 },
  { action: 'limit', queue: QUEUE, maxTasks: 'none' },
  { action: 'limit', queue: QUEUE, apiKeyName: 'k1', maxUnfinishedTasks: 3 },
  { action: 'limit', queue: QUEUE, apiKeyName: 'k1', maxUnfinishedTasks: 'none' },
  { action: 'log_level', level: 'debug' },
  ...BREAKER_MODES.map((to): CommandSpec => ({ action: 'breaker', queue: QUEUE, service: 'smtp', to })),
]

/** Its tasks expire when two hours pass. */
const NIGHTLY = { name: 'nightly', task, input: { n: 1 }, cron: '0 0 1 1 *', queueTimeout: '1h' } as const

export const REQUESTS: FuzzOperations = {
  'cancel by filter': [
    2,
    ({ broker }, pick, n) =>
      broker.cancelMany({
        ...{ queue: QUEUE, before: Date.now(), reason: 'cancelled', by: BY },
        ...(n % 3 === 0 ? { task: 'model.other' } : { tag: `t${pick % 3}` }),
      }),
  ],
  'a consumer reads the cancel rules': [2, readRules],
  'retry a dead task by request': [
    4,
    onDead(({ broker }, id, n) =>
      broker.retry(id, {
        ...{ request: `r${++requests}`, by: BY, afterCompensation: n % 2 === 0 },
        ...(n % 5 === 0 && { edit: { input: { n, more: 'x'.repeat(n % 40) }, version: 1 } }),
      }),
    ),
  ],
  'delete a dead task': [2, onDead(({ broker }, id) => broker.deleteDead(id))],
  'retry dead tasks by filter': [
    2,
    ({ broker }, _, n) =>
      broker.changeDead({
        ...{ action: 'retry', rate: 1_000, by: BY, counted: COUNTED },
        filter: { queue: QUEUE, ...(n % 2 === 0 && { task: task.name }) },
      }),
  ],
  'delete dead tasks by filter': [
    1,
    ({ broker }, _, n) =>
      broker.changeDead({
        ...{ action: 'delete', rate: 1_000, by: BY, counted: COUNTED },
        filter: { queue: QUEUE, tag: `t${n % 3}` },
      }),
  ],
  'stop a request for dead tasks': [
    1,
    async ({ broker, redis, keys }, pick) => {
      const id = at(await redis.hkeys(keys.deadRequests), pick)
      return id !== undefined && broker.stopDead(id, BY)
    },
  ],
  'store a schedule': [2, ({ broker }) => broker.schedules.put(defineSchedule(NIGHTLY), { source: 'api', by: BY })],
  'enqueue the task of a schedule': [2, ({ broker }) => broker.schedules.run(NIGHTLY.name)],
  'declare a schedule': [
    1,
    ({ broker }, _, n) =>
      broker.schedules.declare([defineSchedule({ ...NIGHTLY, name: 'declared', input: { n: n % 3 } })], { by: BY }),
  ],
  'pause or resume a schedule': [
    1,
    ({ broker }, pick) => (pick % 2 === 0 ? broker.schedules.pause : broker.schedules.resume)(NIGHTLY.name, BY),
  ],
  'delete a schedule': [1, ({ broker }, pick) => pick % 3 === 0 && broker.schedules.remove(NIGHTLY.name)],
  'send a command': [
    16,
    ({ fleet }, _, n) => fleet.send({ id: `c${++requests}`, spec: at(COMMANDS, n) ?? expect.fail(), by: BY }),
  ],
  'limit how fast an API key enqueues': [
    1,
    ({ fleet }, _, n) =>
      fleet.send({
        id: `c${++requests}`,
        spec: { action: 'limit', apiKeyName: 'k0', enqueueRate: n % 2 === 0 ? 'none' : { max: 1_000, per: '1s' } },
        by: BY,
      }),
  ],
  'a worker sends a heartbeat': [2, ({ fleet }, pick) => fleet.heartbeat(status(`w${pick % 2}`, [pool(QUEUE)]))],
  'a worker responds to its commands': [
    2,
    async ({ fleet }, pick) => {
      const worker = `w${pick % 2}`
      const { commands } = await fleet.heartbeat(status(worker, [pool(QUEUE)]))
      for (const { id } of commands) await fleet.respond(id, { worker, outcome: 'done' })
    },
  ],
  'a worker leaves the fleet': [1, ({ fleet }, pick) => fleet.leave(`w${pick % 2}`)],
  'define the limits of the catalogue': [
    1,
    ({ redis, keys }, _, n) => {
      const keyLimits = n % 3 === 0 ? { concurrency: 3, keys: { 'key 3': { concurrency: 1 } } } : undefined
      const capacities: Record<string, number> = n % 2 === 0 ? { 'permits:db': 5 } : {}
      return defineLimits(runnerOn(redis), keys, { keyLimits, capacities }, { replaces: true })
    },
  ],
  'define the breakers of the catalogue': [
    1,
    ({ redis, keys }, _, n) =>
      defineBreakers(
        runnerOn(redis),
        keys,
        n % 3 === 0 ? {} : { smtp: { ...DEFAULT_BREAKER, minimumCalls: 5, probes: 2 } },
        { replaces: true },
      ),
  ],
}
