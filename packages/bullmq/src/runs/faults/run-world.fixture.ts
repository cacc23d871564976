// A run whose scripts are called, and whose entries are delivered, only by the processes that a test opens. Its tasks are run here, one by
// one, and are not kept.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineTask, type RunId } from '@bullpen/contract'
import { createRunId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { type NewRun, newTask, type RunSettings } from '@bullpen/engine/internal'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import { queueKeys, runChannels, runKeys, runsKey } from '../../keys.ts'
import { visitRegistry } from '../../leader/visit-registry.ts'
import { ageClaims } from '../../outbox/age-claims.fixture.ts'
import { createForwarder, queueOutbox } from '../../outbox/forwarder.ts'
import { createTargetQueues } from '../../outbox/target-queues.ts'
import { runDeliveries } from '../run-deliveries.ts'
import { createRunStore } from '../run-store.ts'
import { runVisit } from '../run-visits.ts'

const QUEUES = ['io', 'cpu'] as const
const task = defineTask({ name: 'work.item', queue: 'io', input: z.unknown() })

/** `count` is the number of items of the source. */
export async function openRunWorld({ count, take }: { readonly count: number; readonly take?: number }) {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const id = createRunId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  const keys = runKeys(namespace, id)
  const queues = QUEUES.map((queue) => queueKeys(namespace, queue))
  const outboxes = [keys, ...queues].map(({ outbox }) => outbox)
  const subscriber = redis.duplicate()
  const announced: string[] = []
  subscriber.on('message', (_channel, message: string) => announced.push(message))
  await subscriber.subscribe(`${runChannels(namespace)}ended`)
  onTestFinished(async () => {
    const left = await redis.keys(`{${namespace}*`)
    if (left.length > 0) await redis.unlink(left)
    redis.disconnect()
    subscriber.disconnect()
  })
  /** How often each task of a stage was run, by its stage and position. */
  const ran = new Map<string, number>()

  const settings: RunSettings = {
    ...{ id, incarnation: 'one', pipeline: 'p', by: 'ann', onError: 'cancel', maxErrors: 1, ordered: true, take },
    ...{ source: { task: task.name, queue: 'io' }, totalMs: 60_000, keepMs: 60_000 },
    stages: QUEUES.map((queue) => ({ task: task.name, queue, concurrency: 2, buffer: 1 })),
    reduce: { task: 'sort', queue: 'cpu', maxBytes: 1_000 },
  }
  const origin = { id: createTaskId('io', 0, new Uint8Array(10)), enqueuedAt: Date.now(), correlationId: undefined }
  const inQueue = (queue: string, input?: object) => ({ ...newTask(task, {}, {}, origin), queue, input })
  const run: NewRun = { settings, tasks: [inQueue('io', {}), inQueue('io'), inQueue('cpu'), inQueue('cpu', {})] }

  /** Opens a process with a connection of its own. */
  function open(through = redisUrl) {
    const own = new Redis(through, { maxRetriesPerRequest: null })
    own.on('error', () => {})
    const targets = createTargetQueues(own, namespace)
    onTestFinished(async () => {
      own.disconnect()
    })
    const registry = visitRegistry<RunId>(own, runsKey(namespace))
    const common = { redis: own, namespace, registry, now: Date.now }
    const deliveries = runDeliveries({ ...common, targets, onRefused() {}, onChanged() {} })
    const none = async () => {}
    const forwarder = createForwarder({
      deliveries: { groupCancel: none, member: none, memberEnd: none, task: none, runTaskEnd: deliveries.runTaskEnd },
      onUnreadable() {},
    })
    const followRun = () => () => {}
    const store = createRunStore({
      ...{ ...common, deliveries, codec: undefined, waiters: { followRun } },
      call: (send) => send(),
      admit: async () => {},
    })
    const visit = runVisit({ ...common, deliveries, onMissing() {} })

    /** Emits as many items as the run has room for, as an attempt of the source does. Resolves when the attempt has ended. */
    async function emitItems(segment: number): Promise<void> {
      const emission = { segment, fencingToken: 1, values: [], count: 0, digest: '', cursor: '', isLast: false }
      let position = await store.emit(settings, { ...emission, from: 0 })
      while (typeof position === 'object' && position.free > 0) {
        const { emitted: from, free } = position
        const values = Array.from({ length: Math.min(free, count - from) }, (_, i) => `${from + i}`)
        const isLast = from + values.length === count
        position = await store.emit(settings, {
          ...emission,
          from,
          values,
          count: values.length,
          digest: `${from}`,
          isLast,
        })
        if (isLast) return
      }
    }

    async function outputOf(stage: number, position: number, input: unknown): Promise<unknown> {
      if (stage === 0) return emitItems(position)
      if (stage > settings.stages.length) return store.results(settings, 0, 1_000)
      ran.set(`${stage}.${position}`, (ran.get(`${stage}.${position}`) ?? 0) + 1)
      return 10 * Number(input) + stage
    }

    /** Runs every task of a queue, or ends it if the run's tasks are cancelled there. */
    async function runTasksOf({ wait, outbox, job, cancelledGroup }: (typeof queues)[number]): Promise<void> {
      for (const each of await redis.lrange(wait, 0, -1)) {
        const [group = '', data = ''] = await redis.hmget(job(each), 'group', 'data')
        const { run: place, input } = JSON.parse(data ?? '')
        const isCancelled = (await redis.exists(cancelledGroup(place.id))) === 1
        const output = isCancelled ? undefined : await outputOf(place.stage, place.position, input)
        const end = isCancelled ? 'x' : `c\n${JSON.stringify({ output, worker: 'test' })}`
        await redis.multi().lrem(wait, 1, each).del(job(each)).xadd(outbox, '*', 'e', `g ${group} ${end}`).exec()
      }
    }

    async function runTasks(): Promise<void> {
      for (const queue of queues) {
        await runTasksOf(queue)
        await forwarder.forwardLeft(queueOutbox(own, queue), () => false)
      }
    }

    return {
      /** Starts the run, or repeats its start. */
      start: () => store.start(run),
      cancel: () => store.cancel(id, 'ann'),
      /** Runs every task that waits, and forwards their ends. */
      runTasks,
      /** Does what the leader does for the run. */
      visit: () => visit(id),
      /**
       * Does all of this until the leader has forgotten the run, and also takes over what another process has left. If the process loses
       * its connection, the promise never settles.
       */
      async work(): Promise<void> {
        while ((await registry.count()) > 0) {
          await runTasks()
          await ageClaims(redis, outboxes)
          await visit(id)
        }
      },
    }
  }

  return {
    id,
    ran,
    announced,
    open,
    ageClaims: () => ageClaims(redis, outboxes),
    /** The output of the run if it is completed. */
    output: Array.from({ length: take ?? count }, (_, n) => 10 * (10 * n + 1) + 2),
    outputOf: async () => JSON.parse((await redis.hget(keys.meta, 'output')) || 'null'),
    result: () => redis.hget(keys.meta, 'result'),
    /** What the run has left in its queues, besides the marks that refuse further tasks of a cancelled run, and in its own keys. */
    async remains(): Promise<readonly string[]> {
      const record: readonly string[] = [keys.meta, keys.definition]
      const own = (await redis.keys(`${keys.base}*`)).filter((key) => !record.includes(key))
      const tasks = await Promise.all(queues.map(({ wait }) => redis.lrange(wait, 0, -1)))
      const entries = await Promise.all(queues.map(({ outbox }) => redis.xrange(outbox, '-', '+')))
      const rules = await Promise.all(queues.map(({ cancelRules }) => redis.hkeys(cancelRules)))
      return [...own, ...tasks.flat(), ...entries.flat().flatMap(([, fields]) => fields), ...rules.flat()]
    },
  }
}
