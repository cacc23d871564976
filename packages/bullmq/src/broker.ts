// The broker on Redis: stores tasks as BullMQ jobs, cancels them, and reads and lists them. Every process with a broker may
// become the leader of its namespace, which does the housekeeping (leader/leader.ts).
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  BullpenError,
  type ErrorCode,
  isFinal,
  type Log,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, readTaskId } from '@bullpen/contract/internal'
import type { Broker, NewTask, PayloadCodec } from '@bullpen/engine'
import { decodePayload, mapTasks, queueOfAll, storedEnvelope } from '@bullpen/engine/internal'
import { Queue } from 'bullmq'
import { OPEN_ADMISSION, openAdmission } from './admission/admission.ts'
import { DEFAULT_WATERMARK, openMemoryAdmission } from './admission/memory-admission.ts'
import type { ServerMemory } from './admission/memory-meter.ts'
import { parseRules, readProgress, storeRule, underRules } from './cancel/by-filter.ts'
import { cancelById, type OnEnded, reportLateEnd } from './cancel/by-id.ts'
import { blockingConnection, commandTimeout, producerConnection, singleCommandTimeout } from './connection.ts'
import { type AddAllJobs, allJobsAdder } from './internals/composition/add-all-jobs.ts'
import { type AddJob, jobAdder } from './internals/composition/add-job.ts'
import { backendFactory } from './internals/composition/backend.ts'
import { prefixOf, type QueueKeys, queueKeys } from './keys.ts'
import { createFailureLog } from './leader/failure-log.ts'
import { createHousekeeping } from './leader/housekeeping.ts'
import { LEADER_TIMES, type LeaderTimes, openLeader, wakeLeader } from './leader/leader.ts'
import { openRegistration } from './leader/registration.ts'
import { countTasks, readTotals } from './queries/counts.ts'
import { listIds } from './queries/listing.ts'
import { readTogether } from './queries/read-together.ts'
import { addStateReads, decodeState, STATE_READS } from './queries/task-state.ts'
import type { ServerCheck } from './redis/server-checks.ts'
import { openServerMonitor } from './redis/server-monitor.ts'
import { throttledLog } from './redis/throttled-log.ts'
import { createSchemaGuard } from './schema.ts'
import { type CompletionListener, openCompletionListener } from './waiting/completion-listener.ts'

export interface BrokerOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /**
   * The maximum size of one task's stored data, in bytes. The input counts as the codec encodes it. The API has its own limit;
   * this is a second check behind it.
   */
  readonly sizeLimit: number
  readonly log: Log
  /**
   * Encodes the inputs of the tasks that this broker enqueues, and decodes the payloads of the tasks that it returns. If a
   * payload cannot be decoded, the task is returned without that payload, and the broker logs a warning. By default, payloads are
   * stored unencoded.
   */
  readonly codec?: PayloadCodec | undefined
  /**
   * With 'checked' (the default), `enqueue` rejects with `queue_draining` if the queue's whole fleet is draining, with `redis_full` if
   * Redis's memory has reached the watermark, and with `unsafe_redis` if Redis may evict tasks. This opens one extra connection. With
   * 'open', `enqueue` accepts tasks even then, until Redis itself refuses them. Use 'open' in workers, whose handlers may still need to
   * enqueue child tasks.
   */
  readonly admission?: 'checked' | 'open'
  /**
   * The percentage of Redis's memory (`maxmemory`, or the machine's memory if `maxmemory` is 0) at which `enqueue` rejects with
   * `redis_full`. Defaults to 80. Together, the producers exceed it by 5 at most.
   */
  readonly memoryWatermark?: number | undefined
  /** Whether tasks may be stored on a server that may delete them, because its `maxmemory-policy` is not `noeviction`. Defaults to false. */
  readonly allowEviction?: boolean | undefined
  /**
   * The level at which problems with the server's settings are logged, such as a missing append-only file. Defaults to 'warn'. If
   * `admission` is 'open', the settings are not checked.
   */
  readonly serverProblems?: 'warn' | 'info' | undefined
  /** How often the server's settings are checked, in ms. Defaults to 300,000. Tests set this. */
  readonly checkServerEveryMs?: number
  /**
   * Returns the time in milliseconds since 1970, by the clock that decides when tasks are due; for example, the `now` of
   * {@link openSkewMonitor}. Defaults to the machine's clock.
   */
  readonly now?: () => number
  /**
   * Resolves once `now` is right; for example, the `measured` of {@link openSkewMonitor}. Until then, this process does not
   * become the leader, because a wrong clock would expire tasks too early. By default, `now` is taken to be right from the start.
   */
  readonly measured?: Promise<void>
  /**
   * Whether this process may become the leader of the namespace, which does the housekeeping of every queue. Defaults to true.
   * Leave this enabled in at least one process.
   */
  readonly leads?: boolean
  /** How often the leader renews its lease and surveys each queue. Tests set this. */
  readonly leaderTimes?: LeaderTimes
  /** How often this process registers its queues again for the leader, in ms. Defaults to 60,000. Tests set this. */
  readonly registerEveryMs?: number
  /** Called for each task that this process expired as the leader. The callback must not throw or block. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each waiting task that this process, as the leader, ended because of a cancellation. It is also called for a task
   * whose `cancel` rejected because Redis did not respond in time, if the broker learns within a minute that Redis did cancel the
   * task. The callback must not throw or block.
   */
  readonly onCancelled?: (cancelled: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each task that `enqueue` refused before anything was sent to Redis, with the code of the error. The callback must not
   * throw or block.
   */
  readonly onRefused?: (refused: { readonly queue: string; readonly code: string }) => void
  /**
   * Called for each duty of the housekeeping that failed in this process as the leader, except if Redis was not reachable. The
   * broker also logs a warning. The callback must not throw or block.
   */
  readonly onHousekeepingFailed?: (failure: { readonly queue: string; readonly duty: string }) => void
}

/** The broker, together with BullMQ's own queue objects, which Bull Board needs. */
export interface BullmqBroker extends Broker {
  /** Returns whether this process leads the namespace. Takes no round trip. */
  isLeading(): boolean
  /**
   * Checks that Redis does not evict tasks, unless that is allowed. Takes up to one round trip for each server.
   *
   * @throws BullpenError `unsafe_redis`.
   */
  checkServer(): Promise<void>
  /**
   * Returns how much memory Redis uses, as of up to 10 s ago, or undefined if that is unknown or `admission` is 'open'. In a cluster, it
   * is the node with the least room. Takes no round trip.
   */
  memory(): Pick<ServerMemory, 'usedBytes' | 'limitBytes'> | undefined
  /**
   * Returns whether each check of the server's settings has found a problem, as of up to 5 min ago. Checks that Redis does not permit are
   * missing, as are all of them if `admission` is 'open'. Takes no round trip.
   */
  serverProblems(): ReadonlyMap<ServerCheck, boolean>
  readonly boardQueues: readonly Queue[]
}

/** The codes of tasks that were refused before anything was sent to Redis. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['queue_draining', 'redis_full', 'unsafe_redis'])

interface QueueHandles {
  readonly name: string
  readonly queue: Queue
  readonly addJob: AddJob
  readonly addAllJobs: AddAllJobs
  readonly keys: QueueKeys
  readonly completions: CompletionListener
}

/**
 * Returns the task with the status that it was listed under. A task whose worker was lost has no lock, and is listed and counted
 * as active until it is recovered.
 */
function asListed(task: TaskRecord, listed: TaskStatus): TaskRecord {
  return listed === 'active' && task.status === 'waiting' ? { ...task, status: listed } : task
}

/**
 * Opens a broker, without waiting for Redis. Until Redis is reachable, every call rejects with `redis_unavailable`.
 *
 * @throws BullpenError `incompatible_schema`, from every call, if an incompatible version of Bullpen wrote the namespace.
 */
export function openBroker(options: BrokerOptions): BullmqBroker {
  const { redisUrl, namespace, queues, sizeLimit, codec, log, now = Date.now } = options
  const { onExpired = () => {}, onCancelled = () => {}, onRefused = () => {} } = options
  const redis = producerConnection(redisUrl, log)
  const withCommandTimeout = commandTimeout(redisUrl)
  const withSingleTimeout = singleCommandTimeout(redisUrl)
  const schema = createSchemaGuard(redis, namespace, queues)
  const registration = openRegistration({ redis, repeat: schema.repeat, log, everyMs: options.registerEveryMs })
  const isChecked = options.admission !== 'open'
  const admission = isChecked
    ? openAdmission({ redis, redisUrl, namespace, queues, checkSchema: schema.check, log })
    : OPEN_ADMISSION
  const memory = isChecked
    ? openMemoryAdmission({
        redis,
        redisUrl,
        namespace,
        queues,
        watermark: options.memoryWatermark ?? DEFAULT_WATERMARK,
        allowsEviction: options.allowEviction ?? false,
        checkSchema: schema.check,
        log,
      })
    : undefined
  const server = isChecked
    ? openServerMonitor({
        redis,
        redisUrl,
        log,
        level: options.serverProblems ?? 'warn',
        everyMs: options.checkServerEveryMs,
      })
    : undefined
  const handles = new Map(queues.map((name) => [name, openQueueHandles(name)]))
  const processName = `broker:${process.pid}`

  function openQueueHandles(name: string): QueueHandles {
    const keys = queueKeys(namespace, name)
    const queueOptions = {
      connection: redis,
      prefix: prefixOf(namespace, name),
      // A queue that waits for Redis when it is created stays broken if Redis only becomes reachable later.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      // Nothing is written before the namespace's schema is checked.
      skipMetasUpdate: true,
    }
    const queue = new Queue(name, queueOptions, backendFactory({ now }))
    queue.on('error', () => {}) // The outage reporter watches this connection and logs its errors.
    return {
      name,
      queue,
      addJob: jobAdder(redis, queue.getBackend()),
      addAllJobs: allJobsAdder(redis, queue.getBackend()),
      keys,
      completions: openCompletionListener(keys.events, () => blockingConnection(redisUrl, log), log),
    }
  }

  const call = <T>(run: () => Promise<T>): Promise<T> => withCommandTimeout(schema.check()?.then(run) ?? run())

  function handlesOf(name: string): QueueHandles {
    const found = handles.get(name)
    if (found !== undefined) return found
    throw new BullpenError(
      'queue_not_found',
      `no task in the catalogue uses queue '${name}'; the queues are ${queues.join(', ')}`,
    )
  }

  const warnUnreadable = throttledLog((err: Error, suppressed) => {
    log.warn(
      { err, suppressed },
      'a stored payload cannot be decoded; give this process the codec of producers and workers',
    )
  })
  const decode = (stored: unknown): unknown => {
    try {
      return decodePayload(stored, codec)
    } catch (error) {
      warnUnreadable(error as Error)
      return undefined
    }
  }

  /**
   * Returns undefined if a task whose stored string has this many bytes may be sent to Redis, as it nearly always is. Otherwise, the
   * promise resolves once it may be.
   */
  function admit(queue: string, bytes: number): Promise<void> | undefined {
    // None is awaited unless it has to be, so that an enqueue takes a single tick.
    const checking = schema.check()
    if (checking !== undefined) return checking.then(() => admit(queue, bytes))
    const admitting = admission.admit(queue)
    if (admitting !== undefined) return admitting.then(() => memory?.admit(queue, bytes))
    return memory?.admit(queue, bytes)
  }

  function noteRefused(queue: string, error: unknown): void {
    if (error instanceof BullpenError && REFUSALS.has(error.code)) onRefused({ queue, code: error.code })
  }

  /** Returns the string that is stored for a task, and its size. @throws BullpenError `payload_too_large`. */
  function storedAs(task: NewTask): { readonly data: string; readonly bytes: number } {
    const data = JSON.stringify(storedEnvelope(task, codec))
    const bytes = Buffer.byteLength(data)
    if (bytes <= sizeLimit) return { data, bytes }
    throw new BullpenError(
      'payload_too_large',
      `the task would take ${bytes} bytes in Redis; the limit is ${sizeLimit} bytes`,
    )
  }

  /** Returns the handles of a task's queue, or undefined if the id is malformed or names an unknown queue. */
  const handlesOfTask = (id: string): QueueHandles | undefined => handles.get(readTaskId(id)?.queue ?? '')

  async function find(id: TaskId): Promise<TaskRecord | undefined> {
    const home = handlesOfTask(id)
    if (home === undefined) return undefined
    const { keys, name } = home
    const answers = await readTogether(redis, (reads) => {
      addStateReads(reads, keys, id)
      reads.hvals(keys.cancelRules)
    })
    const record = decodeState(id, name, answers, decode)
    return record && underRules(record, parseRules(answers[STATE_READS]))
  }

  const leader =
    options.leads === false
      ? undefined
      : openLeader({
          redis,
          redisUrl,
          namespace,
          checkSchema: schema.check,
          measured: options.measured ?? Promise.resolve(),
          housekeeping: createHousekeeping({
            redis,
            namespace,
            now,
            process: processName,
            onExpired,
            onCancelled,
            onRepaired(queue, entries) {
              if (entries > 0)
                log.warn({ queue, entries }, 'status index repaired: a client without Bullpen used the queue')
            },
            onFailed: createFailureLog({ log, onFailed: options.onHousekeepingFailed }),
          }),
          times: options.leaderTimes ?? LEADER_TIMES,
          log,
        })

  const broker: BullmqBroker = {
    boardQueues: [...handles.values()].map(({ queue }) => queue),
    isLeading: () => leader?.isLeading() ?? false,

    async enqueue(task: NewTask) {
      const { addJob } = handlesOf(task.queue)
      const { data, bytes } = storedAs(task)
      try {
        const admitting = admit(task.queue, bytes)
        if (admitting !== undefined) await withCommandTimeout(admitting)
      } catch (error) {
        noteRefused(task.queue, error)
        throw error
      }
      const limits = admission.limitsOf(task.queue, task.limits)
      return withSingleTimeout(addJob(limits === task.limits ? task : { ...task, limits }, data))
    },

    async enqueueBulk(tasks) {
      // The first task loads what all of them need. Otherwise, each task would read the queue's settings, and if Redis has lost the
      // script, each would send its whole text.
      const first = await Promise.allSettled(tasks.slice(0, 1).map(broker.enqueue))
      return [...first, ...(await Promise.allSettled(tasks.slice(1).map(broker.enqueue)))]
    },

    async enqueueAll(tasks) {
      const queue = queueOfAll(tasks)
      if (queue === undefined) return []
      const { addAllJobs } = handlesOf(queue)
      const stored = mapTasks(tasks, storedAs)
      const allBytes = stored.reduce((sum, { bytes }) => sum + bytes, 0)
      try {
        await withCommandTimeout(Promise.resolve(admit(queue, allBytes)))
      } catch (error) {
        noteRefused(queue, error)
        throw error
      }
      const limited = tasks.map((task) => ({ ...task, limits: admission.limitsOf(queue, task.limits) }))
      const data = stored.map((each) => each.data)
      return withSingleTimeout(addAllJobs(limited, data))
    },

    find: (id) => call(() => find(id)),

    async waitUntilFinished(id, signal) {
      const home = handlesOfTask(id)
      if (home === undefined) return undefined
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      signal.addEventListener('abort', wake)
      const wait = home.completions.wait(id, wake)
      try {
        await withCommandTimeout(wait.following)
        for (;;) {
          // Created before the read, so that an event during the read is not missed.
          changed = Promise.withResolvers()
          const record = await call(() => find(id))
          if (record === undefined || isFinal(record.status) || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        wait.stop()
      }
    },

    async cancel(id, { stoppable, by = '' }) {
      const home = handlesOfTask(id)
      if (home === undefined) return 'not_found'
      const request = { request: randomUUID(), id, stoppable, now: now(), by, process: processName }
      const mayBeSent = redis.status === 'ready'
      try {
        const { answer } = await call(() => cancelById(redis, home.keys, request))
        return answer
      } catch (error) {
        const onEnded: OnEnded = (ended) => onCancelled({ queue: home.name, ...ended })
        if (mayBeSent) void reportLateEnd(redis, home.keys, request, onEnded)
        throw error
      }
    },

    async cancelMany({ queue, task, tag, before, reason, by = processName }) {
      const { keys } = handlesOf(queue)
      const id = createTaskId(queue, now(), randomBytes(ID_RANDOM_BYTES))
      const { rule, known } = await call(() => storeRule(redis, keys, { id, queue, task, tag, before, reason, by }))
      // Otherwise, the leader notices the rule in its next round.
      wakeLeader(redis, namespace, queue).catch(() => {})
      await known
      // Wait until the rule's millisecond has passed, so that the next task to be enqueued has a later timestamp than the rule.
      if (now() === before) await sleep(2)
      return rule
    },

    async cancelProgress(id) {
      const home = handlesOfTask(id)
      return home && call(() => readProgress(redis, home.keys, id))
    },

    async list(query) {
      const { name, keys } = handlesOf(query.queue)
      const { ids, next } = await call(() => listIds(redis, keys, query))
      const [texts, ...answers] = await call(() =>
        readTogether(redis, (reads) => {
          reads.hvals(keys.cancelRules)
          for (const id of ids) addStateReads(reads, keys, id)
        }),
      )
      const rules = parseRules(texts)
      const tasks = ids.flatMap((id, i) => {
        const record = decodeState(id, name, answers.slice(i * STATE_READS, (i + 1) * STATE_READS), decode)
        return record === undefined ? [] : [underRules(asListed(record, query.status), rules)]
      })
      // Drop tasks that have moved on since their ids were read. A waiting task that a cancel rule matches is not listed until
      // the bulk canceller has ended it.
      return { tasks: tasks.filter(({ status }) => status === query.status), next }
    },

    counts: async (name) => {
      const { keys } = handlesOf(name)
      return call(() => countTasks(redis, keys))
    },

    totals: async (name) => {
      const { keys } = handlesOf(name)
      return call(() => readTotals(redis, keys))
    },

    async checkServer() {
      if (memory !== undefined) await call(() => memory.check())
    },

    memory: () => memory?.latest(),
    serverProblems: () => server?.problems() ?? new Map(),

    async ping() {
      await call(() => redis.ping())
    },

    async close() {
      registration.close()
      await leader?.close()
      admission.close()
      memory?.close()
      server?.close()
      for (const { completions } of handles.values()) completions.close()
      await Promise.allSettled([...handles.values()].map(({ queue }) => queue.close()))
      redis.disconnect()
    },
  }
  return broker
}
