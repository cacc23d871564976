// The broker on Redis: stores tasks as BullMQ jobs (./enqueueing.ts), reads and lists them (./task-queries.ts), cancels them
// (./cancelling.ts), and retries and deletes dead ones (./dead-tasks.ts). Every process with a broker may become the leader of its
// namespace, which does the housekeeping (../leader/leader.ts) and runs the schedules (../schedules).

import { randomBytes } from 'node:crypto'
import { timeText } from '@bullpen/contract/internal'
import { createSchedules, type EnqueueRates } from '@bullpen/engine/internal'
import { OPEN_ADMISSION, openAdmission } from '../admission/admission.ts'
import { DEFAULT_IDEMPOTENCY_SHARE, openIdempotencyMemory } from '../admission/idempotency-memory.ts'
import { DEFAULT_QUEUE_SHARE, DEFAULT_WATERMARK, openMemoryAdmission } from '../admission/memory-admission.ts'
import { openStartEstimates } from '../admission/start-estimates.ts'
import { commandTimeout, producerConnection } from '../connection.ts'
import { createEnqueueRates, type EnqueueRatesOptions } from '../enqueue-rates/enqueue-rates.ts'
import { createFailureLog } from '../leader/failure-log.ts'
import { createHousekeeping } from '../leader/housekeeping.ts'
import { LEADER_TIMES, type Leader, openLeader, wakeLeader } from '../leader/leader.ts'
import { openRegistration } from '../leader/registration.ts'
import { readBoardJobs } from '../queries/board-jobs.ts'
import { openServerMonitor, type ServerMonitor } from '../redis/server/server-monitor.ts'
import { scheduleRunner } from '../schedules/schedule-runner.ts'
import { openScheduleStore, type RedisScheduleStore } from '../schedules/schedule-store.ts'
import { createTroubleWatch } from '../schedules/trouble-watch.ts'
import { createSchemaGuard, type SchemaGuard } from '../schema.ts'
import type { Commander } from '../scripts/script.ts'
import type { BrokerOptions, BullmqBroker } from './broker-options.ts'
import { createCancelling } from './cancelling.ts'
import { createDeadTasks } from './dead-tasks.ts'
import { createEnqueueing, type EnqueueingOptions } from './enqueueing.ts'
import { openQueueTable } from './queue-handles.ts'
import { createTaskQueries } from './task-queries.ts'

/**
 * Opens a broker, without waiting for Redis. Until Redis is reachable, every call rejects with `redis_unavailable`.
 *
 * @throws BullpenError `incompatible_schema`, from every call, if an incompatible version of Bullpen wrote the namespace.
 */
export function openBroker(options: BrokerOptions): BullmqBroker {
  const { redisUrl, namespace, sizeLimit, codec, log, now = Date.now } = options
  const { onCancelled = () => {}, onRefused = () => {} } = options
  const redis = producerConnection(redisUrl, log)
  const processName = `broker:${process.pid}`
  const schema = createSchemaGuard(redis, namespace, options.queues)
  const registration = openRegistration({ redis, repeat: schema.repeat, log, everyMs: options.registerEveryMs })
  const { admission, memory, records, starts, server } = openChecks(options, redis, schema)
  const queues = openQueueTable({ redis, redisUrl, namespace, queues: options.queues, now, log })
  const withCommandTimeout = commandTimeout(redisUrl)
  const call = <T>(run: () => Promise<T>): Promise<T> => withCommandTimeout(schema.check()?.then(run) ?? run())
  const store = openScheduleStore({ redis, namespace, queues: options.queues, now, codec, call })
  const leader = options.leads === false ? undefined : standForLeader(options, { redis, schema, processName, store })
  const onChanged = (queue: string): void => {
    // If this message is lost, the leader notices the schedule in its next round.
    wakeLeader(redis, namespace, queue).catch(() => {})
  }

  return {
    ...createEnqueueing({ redisUrl, queues, schema, admission, memory, records, starts, sizeLimit, codec, onRefused }),
    ...createTaskQueries({ redis, queues, call, withCommandTimeout, now, codec, log }),
    ...createCancelling({ redis, namespace, queues, call, now, processName, onCancelled }),
    ...createDeadTasks({ redis, namespace, queues, call, sizeLimit, codec, now }),

    rates: openRates(options, redis, call),
    schedules: createSchedules({ store, queues: options.queues, randomBytes, onChanged }),
    boardQueues: queues.all.map(({ queue }) => queue),
    boardJobs: async (page) => {
      const home = queues.of(page.queue)
      return call(() => readBoardJobs(redis, home, page))
    },
    isLeading: () => leader?.isLeading() ?? false,
    async checkServer() {
      if (memory !== undefined) await call(() => memory.check())
    },
    memory: () => memory?.latest(),
    idempotencyBytes: () => records?.usedBytes(),
    serverProblems: () => server?.problems() ?? new Map(),
    async ping() {
      await call(() => redis.ping())
    },

    async close() {
      registration.close()
      await leader?.close()
      admission.close()
      memory?.close()
      await records?.close()
      starts?.close()
      server?.close()
      await store.close()
      await queues.close()
      redis.disconnect()
    },
  }
}

/** Only producers that limit API keys read the limits as soon as they are connected. */
function openRates(options: BrokerOptions, redis: Commander, call: EnqueueRatesOptions['call']): EnqueueRates {
  const { namespace, enqueueRateOf } = options
  const readsOnConnect = enqueueRateOf !== undefined
  return createEnqueueRates({ redis, namespace, defined: enqueueRateOf ?? (() => undefined), call, readsOnConnect })
}

interface Checks extends Pick<EnqueueingOptions, 'admission' | 'memory' | 'records' | 'starts'> {
  readonly server: ServerMonitor | undefined
}

/**
 * Opens the checks and estimates that a producer needs when it enqueues. If `admission` is 'open', nothing is checked or
 * estimated.
 */
function openChecks(options: BrokerOptions, redis: Commander, schema: SchemaGuard): Checks {
  const { redisUrl, namespace, queues, log, now = Date.now } = options
  if (options.admission === 'open') {
    return { admission: OPEN_ADMISSION, memory: undefined, records: undefined, starts: undefined, server: undefined }
  }
  const shared = { redis, redisUrl, namespace, queues, checkSchema: schema.check, log }
  const { memoryWatermark: watermark = DEFAULT_WATERMARK, allowEviction: allowsEviction = false } = options
  const { queueMemoryShare: queueShare = DEFAULT_QUEUE_SHARE } = options
  const { serverProblems: level = 'warn', checkServerEveryMs: everyMs } = options
  const { idempotencyMemoryShare: sharePercent = DEFAULT_IDEMPOTENCY_SHARE } = options
  const memory = openMemoryAdmission({ ...shared, watermark, queueShare, allowsEviction })
  return {
    admission: openAdmission(shared),
    memory,
    records: openIdempotencyMemory({ ...shared, sharePercent, limitBytes: memory.limitBytes, now }),
    starts: openStartEstimates({ redis, namespace, everyMs: options.readBacklogEveryMs }),
    server: openServerMonitor({ redis, redisUrl, log, level, everyMs }),
  }
}

/** Lets this process become the leader of the namespace. */
function standForLeader(
  options: BrokerOptions,
  {
    redis,
    schema,
    processName,
    store,
  }: { redis: Commander; schema: SchemaGuard; processName: string; store: RedisScheduleStore },
): Leader {
  const { redisUrl, namespace, log, now = Date.now, onExpired = () => {}, onCancelled = () => {} } = options
  const { onScheduled: onEnqueued = () => {} } = options
  const housekeeping = createHousekeeping({
    redis,
    namespace,
    now,
    process: processName,
    onExpired,
    onCancelled,
    runDueSchedules: scheduleRunner({ redis, namespace, store, now, process: processName, onEnqueued, onCancelled }),
    watchSchedules: createTroubleWatch({
      redis,
      namespace,
      now,
      everyMs: options.watchSchedulesEveryMs,
      onBegun(queue, schedule, { kind: trouble, since, detail }) {
        log.warn({ queue, schedule, trouble, since: timeText(since) }, `schedule is in trouble: ${detail}`)
      },
      onEnded(queue, schedule, { kind: trouble, since }) {
        log.info({ queue, schedule, trouble, since: timeText(since) }, 'schedule is no longer in trouble')
      },
    }),
    onRepaired(queue, entries) {
      if (entries > 0) log.warn({ queue, entries }, 'status index repaired: a client without Bullpen used the queue')
    },
    onNewFingerprint(queue, { fingerprint, state, code, message: maskedMessage }) {
      log.warn({ queue, fingerprint, state, code, maskedMessage }, 'new kind of error among dead tasks')
    },
    onFailed: createFailureLog({ log, onFailed: options.onHousekeepingFailed }),
  })
  return openLeader({
    redis,
    redisUrl,
    namespace,
    checkSchema: schema.check,
    measured: options.measured ?? Promise.resolve(),
    housekeeping,
    times: options.leaderTimes ?? LEADER_TIMES,
    log,
  })
}
