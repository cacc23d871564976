// The fuzz's operations that add tasks in other ways than those of the index's model.
import { defineCatalogue, followUp } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { planFollowUps } from '@bullpen/engine/internal'
import { expect } from 'vitest'
import { modelTask } from '../../index-model/model-task.fixture.ts'
import { QUEUE, task } from '../../index-model/worker.fixture.ts'
import { OTHER_QUEUE } from '../fuzz-world.fixture.ts'
import type { FuzzOperations } from '../operation.fixture.ts'

const HOUR = 3_600_000
/** Shorter than a task's removal is remembered (../../../store/lua/includes/task/removed-tasks.lua), in ms. */
const REPEATED_WITHIN_MS = 10_000

/** One for each kind of end, in the queue of the task itself. */
export const OWN_FOLLOW_UPS = planFollowUps(
  { onSuccess: [followUp(task, { n: 1 })], onFailure: [followUp(task, { n: 2 })], onEnd: [followUp(task, { n: 3 })] },
  { catalogue: defineCatalogue(task), correlationId: undefined },
)

const NEEDS: readonly Partial<NewTask>[] = [
  { needs: [{ limiter: 'permits:db', amount: 1 }] },
  { needs: [{ limiter: 'permits:db', amount: 3 }] },
  {
    needs: [
      { limiter: 'permits:db', amount: 2 },
      { limiter: 'permits:gpu', amount: 1 },
    ],
  },
  { needs: [{ limiter: 'task:model.task', amount: 1 }] },
  { services: ['smtp'] },
  { needs: [{ limiter: 'permits:gpu', amount: 1 }], services: ['smtp'] },
]

/** A task with a bit of everything. */
export function variedTask(pick: number, n: number): Partial<NewTask> {
  return {
    ...(pick % 3 === 0 ? NEEDS[n % NEEDS.length] : {}),
    turn: n % 3 === 0 ? undefined : { key: `key ${n % 4}`, weight: 1 + (n % 2) },
    priority: pick % 5 === 0 ? 1 + (n % 3) : 0,
    delayMs: pick % 7 === 0 ? HOUR : undefined,
    expiresAt: n % 11 === 0 ? Date.now() + HOUR : undefined,
    tags: n % 13 === 0 ? [`t${n % 3}`] : undefined,
    events: n % 2 === 0 ? 1_000 : undefined,
    ...(n % 17 === 0 && { followUps: OWN_FOLLOW_UPS }),
    ...(n % 5 === 0 && { apiKeyName: `k${n % 2}`, limits: { perApiKey: { maxUnfinishedTasks: 1_000 } } }),
  }
}

export const ENQUEUES: FuzzOperations = {
  'enqueue a task of any kind': [40, (world, pick, n) => world.enqueue(n, variedTask(pick, n))],
  'enqueue a task with needs': [
    8,
    (world, pick, n) => world.enqueue(n, { ...variedTask(pick, n), ...NEEDS[n % NEEDS.length] }),
  ],
  'enqueue a task that expires later': [
    3,
    (world, pick, n) =>
      world.enqueue(n, {
        expiresAt: Date.now() + HOUR,
        turn: pick % 2 === 0 ? { key: 'key 1', weight: 1 } : undefined,
      }),
  ],
  'enqueue several tasks at once': [
    6,
    (world, pick, n) =>
      Promise.allSettled([0, 1, 2, 3].map((i) => world.enqueue(n, variedTask(pick + i, n + 3 * i)))).then(() => true),
  ],
  'enqueue several tasks together': [
    4,
    ({ broker }, pick, n) =>
      broker.enqueueAll([0, 1, 2].map((i) => modelTask(n, { maxAttempts: 3, ...variedTask(pick + i, n + 5 * i) }))),
  ],
  'enqueue a task with an idempotency key': [
    4,
    async ({ broker, remembered }, pick, n) => {
      const key = `${n % 20}`.padStart(22, 'k')
      const given = { idempotency: { key, request: 'r'.repeat(11), life: 86_400 } }
      const { id } = await broker.enqueue(modelTask(n, { ...variedTask(pick, n), ...given }))
      const first = remembered.get(key) ?? id
      remembered.set(key, first)
      expect(id, 'the task of an idempotency key').toBe(first)
    },
  ],
  'enqueue the last task again': [
    4,
    async ({ broker, redis, keys, last }) => {
      if (last === undefined || Date.now() - last.enqueuedAt > REPEATED_WITHIN_MS) return false
      const exists = await redis.exists(keys.job(last.id))
      expect((await broker.enqueue({ ...last, isRepeat: true })).id).toBe(last.id)
      return expect(await redis.exists(keys.job(last.id)), 'whether the task exists after a repeated call').toBe(exists)
    },
  ],
  'take tokens of an API key': [2, ({ broker }) => broker.rates.take('k0', 1)],
  'take tokens of an API key in queues, and give some back': [
    2,
    async ({ broker }, pick) => {
      const limits = { perApiKey: { enqueueRate: { max: 4, perMs: HOUR } } }
      const wanted = [QUEUE, OTHER_QUEUE].map((queue) => ({ queue, limits, tokens: 1 + (pick % 4) }))
      const giveBack = await broker.takeInQueues('k0', wanted)
      await giveBack?.(new Map([[QUEUE, 1]]))
    },
  ],
}
