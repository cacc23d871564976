// The broker on Redis: stores tasks as BullMQ jobs (./enqueueing.ts), reads and lists them (./task-queries.ts), cancels them
// (./cancelling.ts), and retries and deletes dead ones (./dead-tasks.ts). Every process with a broker may become the leader of its
// namespace, which does the housekeeping (../leader/leader.ts) and runs the schedules (../schedules).

import { randomBytes } from 'node:crypto'
import type { GroupId, RunId } from '@bullpen/contract'
import { timeText } from '@bullpen/contract/internal'
import { createSchedules, type EnqueueRates, type ScheduleStore } from '@bullpen/engine/internal'
import { settlesWithin, sha256 } from '@bullpen/engine/node'
import { createAcknowledgedTasks } from '../acknowledged/acknowledged-tasks.ts'
import { openLossWatch } from '../acknowledged/loss-watch.ts'
import { OPEN_ADMISSION, openAdmission } from '../admission/admission.ts'
import { createFleetFeatures } from '../admission/fleet-features.ts'
import { DEFAULT_IDEMPOTENCY_SHARE, openIdempotencyMemory } from '../admission/idempotency-memory.ts'
import { DEFAULT_QUEUE_SHARE, DEFAULT_WATERMARK, openMemoryAdmission } from '../admission/memory-admission.ts'
import { openStartEstimates } from '../admission/start-estimates.ts'
import { producerConnection, redisErrors } from '../connection.ts'
import { createEnqueueRates, type EnqueueRatesOptions } from '../enqueue-rates/enqueue-rates.ts'
import { createQueueTokens } from '../enqueue-rates/queue-tokens.ts'
import { eventStream } from '../events/event-stream.ts'
import { groupDeliveries } from '../groups/group-deliveries.ts'
import { groupOutbox } from '../groups/group-outbox.ts'
import { createGroupStore } from '../groups/group-store.ts'
import { groupVisit } from '../groups/group-visits.ts'
import { groupsKey, queueKeys, runsKey, schemaKey } from '../keys.ts'
import { createFailureLog } from '../leader/failure-log.ts'
import { createHousekeeping } from '../leader/housekeeping.ts'
import { LEADER_TIMES, type Leader, openLeader, wakeLeader } from '../leader/leader.ts'
import { awaitLease, hasLease } from '../leader/lease-calls.ts'
import { reportLostWorkers } from '../leader/lost-workers.ts'
import { openRegistration } from '../leader/registration.ts'
import { type VisitRegistry, visitDue, visitRegistry } from '../leader/visit-registry.ts'
import { createOrphanSearch } from '../orphans/orphan-search.ts'
import { followUpDeliveries } from '../outbox/follow-up-deliveries.ts'
import { createForwarder, type Forwarder, queueOutbox } from '../outbox/forwarder.ts'
import { createTargetQueues, type TargetQueues } from '../outbox/target-queues.ts'
import { readBoardJobs } from '../queries/board-jobs.ts'
import { readKeys } from '../queries/concurrency-keys.ts'
import { readLostTasks } from '../queries/lost-tasks.ts'
import { readQueueHead } from '../queries/queue-head.ts'
import { countRecentEnds } from '../queries/recent-ends.ts'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { probeWrites } from '../redis/outages/primary.ts'
import { lastWrites } from '../redis/server/server-description.ts'
import { readServerFacts } from '../redis/server/server-facts.ts'
import { openServerMonitor, type ServerMonitor } from '../redis/server/server-monitor.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { unreachableNodes } from '../redis/unreachable-nodes.ts'
import { type RunDeliveries, runDeliveries } from '../runs/run-deliveries.ts'
import { createRunStore } from '../runs/run-store.ts'
import { runVisit } from '../runs/run-visits.ts'
import { scheduleRunner } from '../schedules/schedule-runner.ts'
import { createScheduleStore } from '../schedules/schedule-store.ts'
import { createTroubleWatch } from '../schedules/trouble-watch.ts'
import { createSchemaGuard, type SchemaGuard } from '../schema.ts'
import type { Commander } from '../scripts/script.ts'
import { openGroupWaiters } from '../waiting/group-waiters.ts'
import type { BrokerOptions, BullmqBroker } from './broker-options.ts'
import { createCancelling } from './cancelling.ts'
import { createDeadTasks } from './dead-tasks.ts'
import { createEnqueueing, type EnqueueingOptions } from './enqueueing.ts'
import { openQueueTable, queueReader } from './queue-handles.ts'
import { createTaskQueries } from './task-queries.ts'

/**
 * Opens a broker, without waiting for Redis. Until Redis is reachable, every call rejects with `redis_unavailable`.
 *
 * @throws BullpenError `incompatible_schema`, from every call, if an incompatible version of Bullpen wrote the namespace.
 */
export function openBroker(options: BrokerOptions): BullmqBroker {
  const { redisUrl, namespace, sizeLimit, codec, log, now = Date.now } = options
  const { onCancelled = () => {}, onRefused = () => {}, onGroupEnded = () => {} } = options
  const redis = producerConnection(redisUrl, log, options.watch, options.commandTimeoutMs)
  const processName = `broker:${process.pid}`
  const schema = createSchemaGuard(redis, namespace, options.queues)
  const acknowledged = createAcknowledgedTasks(() => performance.now())
  const { onLost = () => {} } = options
  const losses = openLossWatch({ redis, redisUrl, namespace, acknowledged, onLost, log })
  const repeat = async (): Promise<void> => {
    await losses.check()
    await schema.repeat()
  }
  const registration = openRegistration({ redis, repeat, log, everyMs: options.registerEveryMs })
  const { admission, features, memory, records, starts, server } = openChecks(options, redis, schema)
  const queues = openQueueTable({ ...options, redis, now })
  const withRedisErrors = redisErrors(redisUrl)
  const call = <T>(run: () => Promise<T>): Promise<T> => withRedisErrors(schema.check()?.then(run) ?? run())
  const store = createScheduleStore({ redis, namespace, queues: options.queues, codec, call })
  const targets = createTargetQueues(redis, namespace)
  const registries = registriesOf(redis, namespace)
  const { forwarder, runs: runDelivery } = openForwarder(options, redis, targets, registries.runs)
  const waiters = openGroupWaiters({ redisUrl, namespace, log })
  const forwardGroup = (id: GroupId): void =>
    forwarder.wake(groupOutbox({ redis, namespace, onEnded: onGroupEnded }, id))
  const shared = { redis, schema, processName, store, forwarder, runs: runDelivery, registries }
  const leader = options.leads === false ? undefined : standForLeader(options, shared)
  const onChanged = (queue: string): void => {
    // If this message is lost, the leader notices the schedule in its next round.
    wakeLeader(redis, namespace, queue).catch(() => {})
  }

  const { admitMembers, ...enqueueing } = createEnqueueing({
    ...{ redis, redisUrl, queues, schema, admission, features, memory, records, starts },
    ...{ sizeLimit, codec, acknowledged, onRefused },
  })
  const access = { redis, namespace, queues, call, now }
  const ofQueue = queueReader(access)
  const queries = createTaskQueries({ ...access, codec, log })
  return {
    ...enqueueing,
    ...queries,
    ...createCancelling({ ...access, processName, onCancelled }),
    ...createDeadTasks({ ...access, sizeLimit, codec }),
    ...createQueueTokens({ redis, queues, admission, call }),

    concurrencyKeys: async (query) => readKeys(redis, queues.of(query.queue).keys, query, call),
    forward(queue) {
      if (schema.check() === undefined) forwarder.wake(queueOutbox(redis, queueKeys(namespace, queue)))
    },
    rates: openRates(options, redis, call),
    events: (queue) => eventStream({ redis, key: queues.of(queue).keys.taskEvents, follower: queues.follower, call }),
    schedules: createSchedules({ store, queues: options.queues, randomBytes, sha256, onChanged }),
    orphans: createOrphanSearch({ redis, namespace, call }),
    groups: createGroupStore({
      ...{ redis, namespace, registry: registries.groups, codec, waiters, call, now },
      admit: admitMembers,
      find: queries.find,
      forward: forwardGroup,
      onEnded: onGroupEnded,
    }),
    runs: createRunStore({
      ...{ redis, namespace, registry: registries.runs, codec, waiters, deliveries: runDelivery },
      ...{ call, now },
      admit: admitMembers,
    }),
    boardQueues: queues.all.map(({ queue }) => queue),
    boardJobs: async (page) => {
      const home = queues.of(page.queue)
      return call(() => readBoardJobs(redis, home, page))
    },
    head: ofQueue((keys) => readQueueHead(redis, keys)),
    lostTasks: ofQueue((keys) => readLostTasks(redis, keys)),
    recentEnds: ofQueue((keys, since: number, fingerprints: readonly string[]) =>
      countRecentEnds(redis, keys, since, fingerprints),
    ),
    isLeading: () => leader?.isLeading() ?? false,
    async checkServer() {
      if (memory !== undefined) await call(() => memory.check())
    },
    memory: () => memory?.latest(),
    idempotencyBytes: () => records?.usedBytes(),
    servers: () => call(() => readServerFacts(redis)),
    async leadership() {
      const isLed = await awaitLease(() => call(() => hasLease(redis, namespace)))
      return { isLed, ...(leader?.changes() ?? { changes: 0, overMs: 0 }) }
    },
    async unreachableNodes() {
      const shared = schemaKey(namespace)
      const queueOf = new Map(options.queues.map((queue) => [queueKeys(namespace, queue).meta, queue]))
      const nodes = await unreachableNodes(redis, [shared, ...queueOf.keys()])
      return Array.from(nodes, ([node, keys]) => ({
        node,
        queues: keys.flatMap((key) => queueOf.get(key) ?? []),
        hasShared: keys.includes(shared),
      }))
    },
    lastWrites: () => call(() => lastWrites(redis)),
    serverProblems: () => server?.problems() ?? new Map(),
    async ping() {
      const ofQueues = options.queues.map((queue) => queueKeys(namespace, queue).meta)
      // A broker without queues uses only the namespace's own keys.
      await call(() => probeWrites(redis, ofQueues.length > 0 ? ofQueues : [schemaKey(namespace)]))
    },

    async close() {
      registration.close()
      losses.close()
      await leader?.close()
      await settlesWithin(forwarder.settled(), FORWARD_MS)
      admission.close()
      memory?.close()
      await records?.close()
      starts?.close()
      server?.close()
      waiters.close()
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

interface Checks extends Pick<EnqueueingOptions, 'admission' | 'features' | 'memory' | 'records' | 'starts'> {
  readonly server: ServerMonitor | undefined
}

/**
 * Opens the checks and estimates that a producer needs when it enqueues. If `admission` is 'open', nothing is checked or
 * estimated.
 */
function openChecks(options: BrokerOptions, redis: Commander, schema: SchemaGuard): Checks {
  const { redisUrl, namespace, queues, log, now = Date.now } = options
  if (options.admission === 'open') {
    const none = { features: undefined, memory: undefined, records: undefined, starts: undefined, server: undefined }
    return { admission: OPEN_ADMISSION, ...none }
  }
  const shared = { redis, redisUrl, namespace, queues, checkSchema: schema.check, log }
  const { memoryWatermark: watermark = DEFAULT_WATERMARK, allowEviction: allowsEviction = false } = options
  const { queueMemoryShare: queueShare = DEFAULT_QUEUE_SHARE } = options
  const { serverProblems: level = 'warn', checkServerEveryMs: everyMs } = options
  const { idempotencyMemoryShare: sharePercent = DEFAULT_IDEMPOTENCY_SHARE } = options
  const memory = openMemoryAdmission({ ...shared, watermark, queueShare, allowsEviction })
  return {
    admission: openAdmission(shared),
    features: createFleetFeatures({ redis, namespace, log }),
    memory,
    records: openIdempotencyMemory({ ...shared, sharePercent, limitBytes: memory.limitBytes, now }),
    starts: openStartEstimates({ redis, namespace, everyMs: options.readBacklogEveryMs }),
    server: openServerMonitor({ redis, redisUrl, log, level, everyMs }),
  }
}

/** How long a closing broker waits for what it is forwarding, in ms. The leader forwards the rest. */
const FORWARD_MS = 1_000

interface Delivering {
  readonly forwarder: Forwarder
  readonly runs: RunDeliveries
}

function openForwarder(
  options: BrokerOptions,
  redis: Commander,
  targets: TargetQueues,
  registry: VisitRegistry<RunId>,
): Delivering {
  const { namespace, log, now = Date.now, onForwarded = () => {}, onGroupEnded: onEnded = () => {} } = options
  const { onRunChanged: onChanged = () => {} } = options
  const warnRefused = throttledLog(({ queue, error: err }: { queue: string; error: unknown }, suppressed) => {
    log.warn({ queue, err, suppressed }, 'follow-up task not enqueued: it stays in the outbox and is tried again')
  })
  const warnUnreadable = throttledLog((entries: number, suppressed) => {
    log.warn(
      { entries, suppressed },
      'outbox has entries that this version cannot read: they stay until a newer one reads them',
    )
  })
  const onRefused = (refused: { readonly queue: string; readonly error: unknown }): void => {
    // The outage reporter logs connection errors.
    if (!isConnectionError(refused.error)) warnRefused(refused)
  }
  const runs = runDeliveries({ redis, namespace, registry, targets, now, onRefused, onChanged })
  const forwarder = createForwarder({
    deliveries: {
      ...groupDeliveries({
        ...{ redis, namespace, targets, now, onEnded, onRefused },
        forwardGroup: (id) => forwarder.forwardLeft(groupOutbox({ redis, namespace, onEnded }, id), () => false),
      }),
      task: followUpDeliveries({ targets, now, onForwarded, onRefused }),
      runTaskEnd: runs.runTaskEnd,
    },
    onUnreadable: warnUnreadable,
  })
  return { forwarder, runs }
}

interface Registries {
  readonly groups: VisitRegistry<GroupId>
  readonly runs: VisitRegistry<RunId>
}

function registriesOf(redis: Commander, namespace: string): Registries {
  return {
    groups: visitRegistry(redis, groupsKey(namespace)),
    runs: visitRegistry(redis, runsKey(namespace)),
  }
}

type Ended = Parameters<NonNullable<BrokerOptions['onExpired']>>[0]

interface LeaderParts extends Delivering {
  readonly redis: Commander
  readonly schema: SchemaGuard
  readonly processName: string
  readonly store: ScheduleStore
  readonly registries: Registries
}

/** Lets this process become the leader of the namespace. */
function standForLeader(
  options: BrokerOptions,
  { redis, schema, processName, store, forwarder, runs, registries }: LeaderParts,
): Leader {
  const { redisUrl, namespace, log, now = Date.now, onExpired = () => {}, onCancelled = () => {} } = options
  const { onScheduled: onEnqueued = () => {}, onGroupEnded = () => {} } = options
  /** Also forwards what follows from the end of a task, instead of leaving it for the next round. */
  const andForward =
    (report: (ended: Ended) => void) =>
    (ended: Ended): void => {
      report(ended)
      forwarder.wake(queueOutbox(redis, queueKeys(namespace, ended.queue)))
    }
  const shared = { redis, namespace, now }
  const visitGroup = groupVisit({ ...shared, registry: registries.groups, forwarder, onEnded: onGroupEnded })
  const visitRun = runVisit({
    ...{ ...shared, registry: registries.runs, deliveries: runs },
    onMissing(run, { stage, position, task, queue }) {
      log.warn({ run, stage, position, task, queue }, 'task of a run no longer exists: the run counts it as removed')
    },
  })
  const housekeeping = createHousekeeping({
    redis,
    namespace,
    now,
    process: processName,
    forwarder,
    visits: {
      groups: visitDue(registries.groups, now, visitGroup),
      runs: visitDue(registries.runs, now, visitRun),
      workers: reportLostWorkers({
        ...shared,
        onLost(lost) {
          log.warn(lost, 'worker lost: it sends no heartbeats; its tasks run again on other workers')
          options.onWorkerLost?.()
        },
      }),
    },
    unattached: {
      onFound(queue, { workers, tasks, ids }) {
        log.warn(
          { queue, clients: workers, tasks, ids },
          "a BullMQ Worker without Bullpen's backend uses the queue: what it ends has no follow-ups, and the status may be wrong for a moment",
        )
      },
      onGone(queue, { workers, tasks, ids, since }) {
        const about = { queue, clients: workers, tasks, ids, since: timeText(since) }
        log.warn(about, "the BullMQ Workers without Bullpen's backend have gone")
      },
    },
    onExpired: andForward(onExpired),
    onCancelled: andForward(onCancelled),
    runDueSchedules: scheduleRunner({ redis, namespace, store, now, process: processName, onEnqueued, onCancelled }),
    watchSchedules: createTroubleWatch({
      redis,
      namespace,
      codec: options.codec,
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
      if (entries > 0)
        log.warn({ queue, entries }, "status index repaired: a BullMQ client without Bullpen's backend used the queue")
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
