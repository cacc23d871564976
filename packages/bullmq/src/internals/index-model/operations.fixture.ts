// The random operations of the index's model: everything that can move, add or remove a task.
import { defineCatalogue, defineTask, followUp, type TaskId } from '@bullpen/contract'
import type { NewTask, UniqueKey } from '@bullpen/engine'
import { planFollowUps } from '@bullpen/engine/internal'
import { DelayedError, type Job, type JobsOptions, RateLimitError, UnrecoverableError } from 'bullmq'
import { z } from 'zod'
import { idsInLanes } from '../turns/lane-scan.fixture.ts'
import { modelTask } from './model-task.fixture.ts'
import { QUEUE } from './worker.fixture.ts'
import type { World } from './world.fixture.ts'

/** Returns false if there was nothing to do. `pick` and `n` are random numbers from 0 to 9,999. */
export type Operation = (world: World, pick: number, n: number) => Promise<unknown>

const HOUR = 3_600_000
const later = defineTask({ name: 'model.later', queue: 'later', input: z.object({}) })
const succeed = async (): Promise<string> => 'done'

type Given = Partial<
  Pick<NewTask, 'delayMs' | 'expiresAt' | 'tags' | 'priority' | 'unique' | 'apiKeyName' | 'limits' | 'followUps'>
>

const enqueue =
  (given: (n: number) => Given): Operation =>
  ({ broker }, _, n) => {
    const turn = n % 2 === 0 ? { key: `key ${n % 7}`, weight: 1 + (n % 3) } : undefined
    return broker.enqueue(modelTask(n, { maxAttempts: 3, turn, ...given(n) }))
  }

/** Two keys. Some of the tasks are scheduled, some have a priority, and some expire. */
const unique =
  (onConflict: UniqueKey['onConflict']) =>
  (n: number): Given => ({
    unique: { key: `u${n % 2}`, until: n % 3 === 0 ? 'started' : 'finished', onConflict, maxDelayMs: undefined },
    delayMs: n % 5 < 2 ? HOUR : undefined,
    priority: n % 7 < 2 ? 3 : 0,
    expiresAt: n % 4 === 0 ? Date.now() + HOUR : undefined,
  })

/** One of two keys, whose tasks are counted. */
const counted = (n: number): Given => ({
  apiKeyName: `k${n % 2}`,
  limits: { perApiKey: { maxUnfinishedTasks: 1_000 } },
  delayMs: n % 5 === 0 ? HOUR : undefined,
  priority: n % 7 < 2 ? 3 : 0,
})

/** One for each kind of end, in another queue. */
const followUps = planFollowUps(
  { onSuccess: [followUp(later, {})], onFailure: [followUp(later, {})], onEnd: [followUp(later, {})] },
  { catalogue: defineCatalogue(later), correlationId: undefined },
)

const add =
  (options: (n: number) => JobsOptions): Operation =>
  ({ queue }, _, n) =>
    queue.add(
      'plain',
      { n },
      { attempts: 1 + (n % 3), backoff: { type: 'fixed', delay: n % 2 === 0 ? HOUR : 5 }, ...options(n) },
    )

type Structure = 'wait' | 'lanes' | 'prioritized' | 'active' | 'delayed' | 'failed' | 'completed' | 'waitingChildren'

/** Acts on a job that is in the given set or list. */
const onJobOf =
  (place: Structure, act: (job: Job, n: number) => unknown): Operation =>
  async (world, pick, n) => {
    const ids = await idsIn(world, place)
    const job = await world.queue.getJob(ids[pick % Math.max(1, ids.length)] ?? '')
    return job === undefined ? false : act(job, n)
  }

const idsIn = ({ redis, keys }: World, place: Structure): Promise<string[]> =>
  place === 'lanes'
    ? idsInLanes(redis, keys)
    : place === 'wait' || place === 'active'
      ? redis.lrange(keys[place], 0, -1)
      : redis.zrange(keys[place], '0', '-1')

const end =
  (kind: 'completed' | 'dead' | 'cancelled' | 'expired' | 'lost'): Operation =>
  ({ end }, pick) =>
    end(pick, () => (kind === 'completed' ? { kind, output: { n: 1 } } : { kind }), succeed)

const endPlain =
  (plain: (job: Job, token: string) => Promise<unknown>): Operation =>
  ({ end }, pick) =>
    end(pick, () => ({ kind: 'completed', output: { n: 1 } }), plain)

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'enqueue a task': enqueue(() => ({})),
  'enqueue a tagged task': enqueue((n) => ({ tags: [`t${n % 3}`] })),
  'enqueue a delayed task': enqueue((n) => ({ delayMs: n % 2 === 0 ? HOUR : n % 20 })),
  'enqueue a task that expires': enqueue((n) => ({ expiresAt: Date.now() + (n % 50) })),
  'enqueue a delayed task that expires': enqueue((n) => ({ delayMs: HOUR, expiresAt: Date.now() + (n % 50) })),
  'enqueue a task that is counted for its API key': enqueue(counted),
  'replace a unique task that may be counted': enqueue((n) => ({
    ...unique('replace')(n),
    ...(n % 2 === 0 ? counted(n) : {}),
  })),
  'enqueue a task with follow-ups that may be counted': enqueue((n) => ({
    followUps,
    ...(n % 2 === 0 ? counted(n) : { delayMs: n % 3 === 0 ? HOUR : undefined }),
  })),
  'replace a unique task that has follow-ups': enqueue((n) => ({ followUps, ...unique('replace')(n) })),
  'enqueue a unique task': enqueue(unique('keep')),
  'replace a unique task': enqueue(unique('replace')),
  'postpone a unique task': enqueue((n) => ({ ...unique('extend')(n), delayMs: HOUR + n })),
  'add a job': add(() => ({})),
  'add a job at the head': add(() => ({ lifo: true })),
  'add a prioritized job': add((n) => ({ priority: 1 + (n % 4) })),
  'add a delayed prioritized job': add((n) => ({ priority: 1 + (n % 4), delay: n % 20 })),
  'add a delayed job': add((n) => ({ delay: n % 2 === 0 ? HOUR : 1 + (n % 20) })),
  'add a job twice': add((n) => ({ jobId: `same${n % 5}`, delay: n % 2 === 0 ? HOUR : 0 })),
  'add a deduplicated job': add((n) => ({ deduplication: { id: `d${n % 2}` }, delay: n % 3 === 0 ? HOUR : 0 })),
  'add a throttled deduplicated job': add((n) => ({ deduplication: { id: `e${n % 2}`, ttl: 50 } })),
  'extend a deduplicated job': add((n) => ({
    deduplication: { id: `x${n % 2}`, ttl: HOUR, extend: true, replace: true },
    delay: HOUR,
  })),
  'replace a deduplicated job': add((n) => ({ deduplication: { id: `r${n % 2}`, replace: true }, delay: HOUR + n })),
  'keep the last deduplicated job': add((n) => ({
    deduplication: { id: `k${n % 2}`, keepLastIfActive: true },
    delay: n % 3 === 0 ? 5 : 0,
  })),
  'add jobs in bulk': ({ queue }, _, n) =>
    queue.addBulk([0, 1, HOUR].map((delay) => ({ name: 'plain', data: {}, opts: { delay, priority: n % 3 } }))),
  'add a flow': ({ flows }, _, n) => {
    const opts = { delay: n % 3 === 0 ? HOUR : 0, priority: n % 2 }
    const child = {
      name: 'child',
      queueName: QUEUE,
      opts: { failParentOnFailure: n % 2 === 0, removeDependencyOnFailure: n % 2 === 1 },
    }
    return flows.add({
      name: 'parent',
      queueName: QUEUE,
      opts,
      children: [child, { ...child, opts: { ...child.opts, delay: 5 } }],
    })
  },
  'schedule jobs': ({ queue }, _, n) =>
    queue.upsertJobScheduler(`s${n % 2}`, { every: 20 + (n % 3) * HOUR }, { name: 'plain', data: { n } }),
  'remove a job scheduler': ({ queue }, _, n) => queue.removeJobScheduler(`s${n % 2}`),

  'fetch a task': ({ fetch }) => fetch('bullpen'),
  'fetch a task, too': ({ fetch }) => fetch('bullpen'),
  'fetch a job with a plain worker': ({ fetch }) => fetch('plain'),
  'fetch a job with a plain worker that removes jobs': ({ fetch }) => fetch('plain with retention'),
  'complete a task': end('completed'),
  'retry a task later': ({ end }, pick, n) =>
    end(pick, () => ({ kind: 'retrying', delayMs: n % 2 === 0 ? HOUR : n % 20 }), succeed),
  'end a task as dead': end('dead'),
  'end a task as cancelled': end('cancelled'),
  'end a task as expired': end('expired'),
  'leave a task to its new owner': end('lost'),
  'snooze a task': ({ end }, pick, n) =>
    end(pick, () => ({ kind: 'snoozed', delayMs: n % 2 === 0 ? HOUR : 1 + (n % 20) }), succeed),
  'requeue a task': ({ end }, pick) => end(pick, () => ({ kind: 'requeued', throttleMs: undefined }), succeed),
  'throttle the queue': ({ end }, pick) => end(pick, () => ({ kind: 'requeued', throttleMs: 5 }), succeed),
  'release a task': ({ end }, pick) => end(pick, () => 'released', succeed),
  'complete a job': endPlain(succeed),
  'fail a job': endPlain(() => Promise.reject(new Error('no'))),
  'fail a job permanently': endPlain(() => Promise.reject(new UnrecoverableError('no'))),
  'limit the rate': endPlain(() => Promise.reject(new RateLimitError())),
  'delay a job in its processor': (world, pick, n) =>
    world.end(
      pick,
      () => ({ kind: 'snoozed', delayMs: 5 }),
      async (job, token) => {
        world.delayedByPlain.add(job.id ?? '')
        await job.moveToDelayed(Date.now() + (n % 2 === 0 ? HOUR : 5), token)
        throw new DelayedError()
      },
    ),
  'lose a task': ({ lose }, pick) => lose(pick),
  'lose a task again': ({ lose }, pick) => lose(pick),

  'cancel a task': async (world, pick, n) => {
    const places = ['wait', 'delayed', 'active', 'prioritized', 'lanes'] as const
    const ids = await idsIn(world, places[n % places.length] ?? 'wait')
    const id = ids[pick % Math.max(1, ids.length)]
    return id === undefined ? false : world.broker.cancel(id as TaskId, { stoppable: n % 2 === 0 })
  },

  'retry a dead task': onJobOf('failed', (job) => job.retry('failed')),
  'retry a dead task from its first attempt': onJobOf('failed', (job) =>
    job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true }),
  ),
  'repeat a completed task': onJobOf('completed', (job) => job.retry('completed')),
  'promote a task': onJobOf('delayed', (job) => job.promote()),
  'change the delay of a task': onJobOf('delayed', (job, n) => job.changeDelay(n % 2 === 0 ? HOUR : n % 20)),
  'change the priority of a task': onJobOf('wait', (job, n) =>
    job.changePriority({ priority: n % 3, lifo: n % 2 === 0 }),
  ),
  'change the priority of a prioritized task': onJobOf('prioritized', (job, n) =>
    job.changePriority({ priority: n % 3 }),
  ),
  'remove a waiting task': onJobOf('wait', (job) => job.remove()),
  'remove a task in a lane': onJobOf('lanes', (job) => job.remove()),
  'change the priority of a task in a lane': onJobOf('lanes', (job, n) => job.changePriority({ priority: n % 3 })),
  'remove a delayed task': onJobOf('delayed', (job) => job.remove()),
  'remove a dead task': onJobOf('failed', (job) => job.remove()),
  'remove a completed task': onJobOf('completed', (job) => job.remove()),
  'remove a parent with its children': onJobOf('waitingChildren', (job) => job.remove({ removeChildren: true })),
  'remove the unprocessed children of a parent': onJobOf('waitingChildren', (job) => job.removeUnprocessedChildren()),
  'report progress': onJobOf('active', (job) => job.updateProgress({ fraction: 0.5 })),
  'change the data of a task': onJobOf('wait', (job, n) => job.updateData({ changed: 'x'.repeat(n % 50) })),
  'change the data of a completed task': onJobOf('completed', (job, n) =>
    job.updateData({ changed: 'x'.repeat(n % 50) }),
  ),
  'retry all dead tasks': ({ queue }, _, n) => queue.retryJobs({ state: 'failed', count: 1 + (n % 5) }),
  'repeat all completed tasks': ({ queue }, _, n) => queue.retryJobs({ state: 'completed', count: 1 + (n % 5) }),
  'promote all tasks': ({ queue }, _, n) => queue.promoteJobs({ count: 1 + (n % 5) }),
  'clean a status': ({ queue }, _, n) => {
    const types = ['completed', 'failed', 'wait', 'delayed', 'prioritized', 'active'] as const
    return queue.clean(0, 1 + (n % 4), types[n % types.length])
  },
  'pause the queue for a moment': async ({ queue }) => {
    await queue.pause()
    await queue.resume()
  },
  'remove orphaned jobs': ({ queue }) => queue.removeOrphanedJobs(),
}
