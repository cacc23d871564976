// The broker on Redis: stores tasks as BullMQ jobs and tells how they stand.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { BullpenError, isFinal, type Log, type TaskId, type TaskRecord } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, readTaskId } from '@bullpen/contract/internal'
import type { Broker, NewTask } from '@bullpen/engine'
import { storedEnvelope } from '@bullpen/engine/internal'
import { Queue } from 'bullmq'
import type { ChainableCommander, Redis } from 'ioredis'
import { OPEN_ADMISSION, openAdmission } from './admission/admission.ts'
import { type BulkCanceller, openBulkCanceller } from './cancel/bulk-canceller.ts'
import { repeatCancels, requestCancel } from './cancel/cancel.ts'
import { readProgress, readRules, storeRule, underRules } from './cancel/cancel-rules.ts'
import { blockingConnection, producerConnection, withCommandTimeout } from './connection.ts'
import { BACKOFF_TYPE } from './internals/backoff-strategy.ts'
import { prefixOf, type QueueKeys, queueKeys } from './keys.ts'
import { expireTasks, keepSweeping } from './maintenance/expirer.ts'
import { wakeIdleConsumers } from './maintenance/global-concurrency.ts'
import { releaseThrottle } from './maintenance/throttle.ts'
import { listIds } from './queries/listing.ts'
import { askState, readState, STATE_COMMANDS } from './queries/task-state.ts'
import { type CompletionListener, openCompletionListener } from './waiting/completion-listener.ts'

export interface BrokerOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /** The most bytes that one task's stored data may have: a second line behind the API's own limit. */
  readonly sizeLimit: number
  readonly log: Log
  /**
   * 'checked': `enqueue` rejects with `queue_draining` while the queue's whole fleet drains. 'open': it does not, for
   * workers, whose handlers may enqueue what belongs to their work. Default: 'checked', with one more connection.
   */
  readonly admission?: 'checked' | 'open'
  /** Milliseconds since 1970, by the clock that tasks are due by, as of {@link watchSkew}. Default: the machine's. */
  readonly now?: () => number
  /** Hears of the tasks that this broker's sweep has ended. Must neither throw nor wait. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /** Hears of the tasks that this broker's sweep has ended for a cancel. Must neither throw nor wait. */
  readonly onCancelled?: (cancelled: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

/** The broker, and BullMQ's own queues for Bull Board to show. */
export interface BullmqBroker extends Broker {
  readonly boardQueues: readonly Queue[]
}

interface QueueHandles {
  readonly name: string
  readonly queue: Queue
  readonly keys: QueueKeys
  readonly settlements: CompletionListener
  readonly janitor: BulkCanceller
}

/** Opens without waiting for Redis: until it is there, every call rejects with `redis_unavailable`. */
export function openBroker(options: BrokerOptions): BullmqBroker {
  const { redisUrl, namespace, queues, sizeLimit, log, now = Date.now } = options
  const { onExpired = () => {}, onCancelled = () => {} } = options
  const redis = producerConnection(redisUrl, log)
  const isChecked = options.admission !== 'open'
  const admission = isChecked ? openAdmission({ redis, redisUrl, namespace, queues, log }) : OPEN_ADMISSION
  const shelves = new Map(queues.map((name) => [name, openQueueHandles(name)]))

  function openQueueHandles(name: string): QueueHandles {
    const keys = queueKeys(namespace, name)
    const queue = new Queue(name, {
      connection: redis,
      prefix: prefixOf(namespace, name),
      // With Redis down at the start, a queue that waits for it stays broken after it is back.
      skipWaitingForReady: true,
      skipVersionCheck: true,
    })
    queue.on('error', () => {}) // The connection logs its own errors, once a second.
    return {
      name,
      queue,
      keys,
      settlements: openCompletionListener(keys.events, () => blockingConnection(redisUrl, log), log),
      janitor: openBulkCanceller({ redis, keys, log, onMoved: (moved) => onCancelled({ queue: name, ...moved }) }),
    }
  }

  function shelf(name: string): QueueHandles {
    const found = shelves.get(name)
    if (found === undefined) {
      throw new BullpenError(
        'queue_not_found',
        `no task of the catalogue uses the queue '${name}'; known are ${queues.join(', ')}`,
      )
    }
    return found
  }

  async function find(id: TaskId): Promise<TaskRecord | undefined> {
    const home = shelves.get(readTaskId(id)?.queue ?? '')
    if (home === undefined) return undefined
    const { keys, name } = home
    const answers = await ask(redis, (transaction) => askState(transaction, keys, id).hvals(keys.cancelRules))
    const record = readState(id, name, answers)
    return record && underRules(record, readRules(answers[STATE_COMMANDS]))
  }

  const sweep = async (): Promise<void> => {
    await admission.refresh()
    for (const { name, keys } of shelves.values()) {
      for (const expired of await expireTasks(redis, keys, now(), `sweep:${process.pid}`)) {
        onExpired({ queue: name, ...expired })
      }
      await releaseThrottle(redis, keys)
      await wakeIdleConsumers(redis, keys)
      await repeatCancels(redis, keys, now(), `sweep:${process.pid}`)
    }
  }
  const stopSweeping = keepSweeping(sweep, log)

  return {
    boardQueues: [...shelves.values()].map(({ queue }) => queue),

    async enqueue(task: NewTask) {
      const { queue, keys } = shelf(task.queue)
      const envelope = storedEnvelope(task)
      const bytes = Buffer.byteLength(JSON.stringify(envelope))
      if (bytes > sizeLimit) {
        throw new BullpenError(
          'payload_too_large',
          `the task would take ${bytes} bytes in Redis; the limit is ${sizeLimit}`,
        )
      }
      // Not awaited where it is known, as it nearly always is: then nothing is waited for.
      const admitted = admission.admit(task.queue)
      if (admitted !== undefined) await withCommandTimeout(admitted)
      const options = {
        jobId: task.id,
        timestamp: task.enqueuedAt,
        attempts: task.maxAttempts,
        backoff: { type: BACKOFF_TYPE },
        ...(task.delayMs !== undefined && { delay: task.delayMs }),
      }
      const kept = [queue.add(task.task, envelope, options)]
      // Sent first, and both in one round trip: an entry without its task is forgotten by the sweep.
      if (task.expiresAt !== undefined) kept.unshift(redis.zadd(keys.expiries, task.expiresAt, task.id) as never)
      await withCommandTimeout(Promise.all(kept))
    },

    find: (id) => withCommandTimeout(find(id)),

    async waitUntilFinished(id, signal) {
      const home = shelves.get(readTaskId(id)?.queue ?? '')
      if (home === undefined) return undefined
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const watching = home.settlements.watch(id, wake)
      try {
        await withCommandTimeout(watching.followed)
        for (;;) {
          // Before the look, so that what happens during it is not missed.
          changed = Promise.withResolvers()
          const record = await withCommandTimeout(find(id))
          if (record === undefined || isFinal(record.status) || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        watching.stop()
      }
    },

    async cancel(id, { stoppable }) {
      const home = shelves.get(readTaskId(id)?.queue ?? '')
      if (home === undefined) return 'not_found'
      return withCommandTimeout(
        requestCancel(redis, home.keys, { id, stoppable, now: now(), process: `cancel:${process.pid}` }),
      )
    },

    async cancelMany({ queue, task, tag, before, reason, by = `cancel:${process.pid}` }) {
      const { keys, janitor } = shelf(queue)
      const id = createTaskId(queue, now(), randomBytes(ID_RANDOM_BYTES))
      const { rule, known } = await withCommandTimeout(
        storeRule(redis, keys, { id, queue, task, tag, before, reason, by }),
      )
      janitor.hurry()
      await known
      // So that what is enqueued afterwards is enqueued later, by this clock.
      if (now() === before) await sleep(2)
      return rule
    },

    async cancelProgress(id) {
      const home = shelves.get(readTaskId(id)?.queue ?? '')
      return home && withCommandTimeout(readProgress(redis, home.keys, id))
    },

    async list(query) {
      const { name, keys } = shelf(query.queue)
      const { ids, next } = await withCommandTimeout(listIds(redis, keys, query))
      const [texts, ...answers] = await withCommandTimeout(
        ask(redis, (all) => ids.reduce((rest, id) => askState(rest, keys, id), all.hvals(keys.cancelRules))),
      )
      const rules = readRules(texts)
      const tasks = ids.flatMap((id, i) => {
        const record = readState(id, name, answers.slice(i * STATE_COMMANDS, (i + 1) * STATE_COMMANDS))
        return record === undefined ? [] : [underRules(record, rules)]
      })
      // A task that has moved on since its id was read, or that shares its set with another status, is not of this page;
      // one that is cancelled and stands where it waited is of none until the janitor has moved it.
      return { tasks: tasks.filter(({ status }) => status === query.status), next }
    },

    async counts(name) {
      const { keys } = shelf(name)
      const [waiting, active, scheduled, completed, dead] = await withCommandTimeout(
        ask(redis, (transaction) =>
          transaction.llen(keys.wait).llen(keys.active).zcard(keys.delayed).zcard(keys.completed).zcard(keys.failed),
        ),
      )
      return {
        waiting: Number(waiting),
        active: Number(active),
        scheduled: Number(scheduled),
        retrying: 0,
        completed: Number(completed),
        dead: Number(dead),
        cancelled: 0,
        expired: 0,
      }
    },

    async ping() {
      await withCommandTimeout(redis.ping())
    },

    async close() {
      stopSweeping()
      admission.close()
      for (const { settlements, janitor } of shelves.values()) {
        settlements.close()
        janitor.close()
      }
      await Promise.allSettled([...shelves.values()].map(({ queue }) => queue.close()))
      redis.disconnect()
    },
  }
}

/** One transaction: its questions are answered for the same moment. Rejects when any of them failed. */
async function ask(
  redis: Redis,
  questions: (transaction: ChainableCommander) => ChainableCommander,
): Promise<unknown[]> {
  const answers = (await questions(redis.multi()).exec()) ?? []
  return answers.map(([error, answer]) => {
    if (error !== null) throw error
    return answer
  })
}
