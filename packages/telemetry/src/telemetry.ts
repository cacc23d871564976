// Collects the metrics of a process: counts events, reads gauges at each scrape, and renders both for Prometheus.
import type { PoolState, SlotState, TaskDefinition } from '@bullpen/contract'
import { POOL_STATES, SLOT_STATES } from '@bullpen/contract/internal'
import type { EventSink } from '@bullpen/engine'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type EnqueueMetrics, enqueueMetrics } from './metrics/enqueue-metrics.ts'
import { taskMetrics } from './metrics/event-metrics.ts'
import { type AnsweredRequest, httpMetrics } from './metrics/http-metrics.ts'
import { counter, fastHistogram, gauge } from './metrics/instruments.ts'
import { MISNAMED_PROCESS_METRICS } from './metrics/metrics-table.ts'
import { type QueueGauges, queueGauges } from './metrics/queue-gauges.ts'
import { type ChangedRun, runMetrics } from './metrics/run-metrics.ts'
import { sloMetrics } from './metrics/slo-metrics.ts'

/** A pool whose state is read at each scrape. */
export interface WatchedPool {
  readonly queue: string
  size(): number
  busy(): number
  /** Handlers that are still running after their attempt has ended. */
  stuckHandlers(): number
  /** When the time limit and the grace period of the pool's drain are over, in ms since 1970, if it is draining and has a limit. */
  drainsUntil(): number | undefined
  state(): PoolState
  slots(): readonly { readonly state: SlotState }[]
  status(): { readonly paused: boolean }
}

export interface Telemetry extends QueueGauges, Pick<EnqueueMetrics, 'enqueueTimed'> {
  /** Counts and times events. A call takes less than a microsecond and never throws. */
  readonly sink: EventSink
  /**
   * Publishes the counters of these definitions' tasks and queues from 0, because Prometheus's rate() does not see the increment with
   * which a series appears. Call it once: with the whole catalogue in an API process, and with the served queues' definitions in a worker.
   */
  publishTasks(definitions: readonly Pick<TaskDefinition, 'name' | 'queue'>[]): void
  /** Publishes from 0 how many tasks {@link enqueueRefused} has counted, for each of these queues and codes. */
  publishRefusals(queues: readonly string[], codes: readonly string[]): void
  /** Publishes the objectives of these definitions, and counts which of their tasks start in time. Call it once, before any event. */
  watchObjectives(definitions: readonly Pick<TaskDefinition, 'name' | 'queue' | 'slo'>[]): void
  /** Reads a pool at every scrape until the returned function is called. There can be at most one pool per queue. */
  watchPool(pool: WatchedPool): () => void
  /**
   * Calls `read` at every scrape, so that it can set gauges. If `read` throws, the failure is counted and the scrape continues.
   * If it throws an AggregateError, each of its errors is counted.
   */
  onScrape(read: () => Promise<void> | void): void
  /** Sets how long attempts of these definitions take, as far as the definitions say. */
  expectedDurations(
    definitions: readonly { readonly queue: string; readonly name: string; readonly expectedMs: number | undefined }[],
  ): void
  /** Sets how many retries the retry budget of a definition holds. Call it from {@link onScrape} at every scrape. */
  heldRetries(queue: string, task: string, count: number): void
  /** Sets how many of a queue's schedules are in each kind of trouble. Call it from {@link onScrape} at every scrape. */
  troubledSchedules(queue: string, counts: Readonly<Record<string, number>>): void
  /** Sets how many requests are waiting for room in the queue. Call it from {@link onScrape} at every scrape. */
  blockedRequests(queue: string, count: number): void
  redisUp(up: boolean): void
  /** Sets how many of this process's connections to Redis are ready, and how many are not. Call it from {@link onScrape}. */
  redisConnections(count: { readonly ready: number; readonly notReady: number }): void
  /** Adds the time that a command has waited for Redis's reply. A call takes less than a microsecond. */
  redisReplied(seconds: number): void
  /** Sets how much memory Redis uses, or undefined if that is unknown. Call it from {@link onScrape}. */
  redisMemory(memory: { readonly usedBytes: number; readonly limitBytes: number } | undefined): void
  /** Sets how much memory the records of idempotency keys take, or undefined if that is unknown. Call it from {@link onScrape}. */
  idempotencyRecords(bytes: number | undefined): void
  /** Sets whether each check of Redis's settings has found a problem. Call it from {@link onScrape}. */
  redisProblems(problems: ReadonlyMap<string, boolean>): void
  /** Sets whether each of Redis's last writes to its disk failed. Call it from {@link onScrape}. */
  redisWrites(failed: ReadonlyMap<string, boolean>): void
  /** Counts locks of a queue's tasks that were renewed late. */
  locksLate(queue: string, locks: number): void
  /** Counts an end of the thread that renews the locks. */
  lockThreadEnded(): void
  /** Counts a worker that stopped sending heartbeats without leaving the fleet. */
  workerLost(): void
  /** Counts tasks of a queue that were acknowledged and that Redis has lost. */
  tasksLost(lost: { readonly queue: string; readonly tasks: number }): void
  /** Counts a task that was refused because of the state of the queue or of Redis. */
  enqueueRefused(refused: { readonly queue: string; readonly code: string }): void
  /** Sets how many streams of events about this kind of subject are open. Call it from {@link onScrape} at every scrape. */
  eventStreams(subject: string, count: number): void
  /** Sets how many groups have not ended. Call it from {@link onScrape} at every scrape. */
  unfinishedGroups(count: number): void
  /** Counts a group that has ended with this result. */
  groupEnded(result: string): void
  /** Sets how many runs of pipelines have not ended. Call it from {@link onScrape} at every scrape. */
  unfinishedRuns(count: number): void
  /** Counts what this process has changed about a run. */
  runChanged(run: ChangedRun): void
  /** Sets whether this process leads the namespace. Call it from {@link onScrape}. */
  leader(isLeading: boolean): void
  /** Counts a duty of the leader's housekeeping that has failed. */
  housekeepingFailed(failure: { readonly queue: string; readonly duty: string }): void
  /**
   * Sets how many milliseconds this machine's clock is ahead of Redis's clock, or undefined if that is unknown. Call it from
   * {@link onScrape}.
   */
  clockSkew(ms: number | undefined): void
  httpObserved(request: AnsweredRequest): void
  /** Returns the response to a scrape by Prometheus. Concurrent scrapes share the same readings. */
  exposition(): Promise<{ readonly contentType: string; readonly text: string }>
}

/** Creates the metrics of a process in a separate registry, so that tests can create several in one process. */
export function createTelemetry(about: { readonly role: 'api' | 'worker'; readonly version: string }): Telemetry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED_PROCESS_METRICS) registry.removeSingleMetric(name)
  gauge(registry, 'bullpen_build_info').set({ version: about.version, role: about.role }, 1)

  const pools = poolGauges(registry)
  const tasks = taskMetrics()
  const slos = sloMetrics(registry)
  const http = httpMetrics()
  const runs = runMetrics()
  const queues = queueGauges(registry)
  const enqueues = enqueueMetrics()
  const expected = gauge(registry, 'bullpen_task_expected_seconds')
  const held = gauge(registry, 'bullpen_held_retries')
  const troubled = gauge(registry, 'bullpen_troubled_schedules')
  const blocked = gauge(registry, 'bullpen_blocked_requests')
  const redisUp = gauge(registry, 'bullpen_redis_up')
  const connections = gauge(registry, 'bullpen_redis_connections')
  const commands = fastHistogram('bullpen_redis_command_duration_seconds')
  const replies = commands.series({})
  const memoryUsed = gauge(registry, 'bullpen_redis_memory_used_bytes')
  const memoryLimit = gauge(registry, 'bullpen_redis_memory_limit_bytes')
  const records = gauge(registry, 'bullpen_idempotency_records_bytes')
  const unsafe = gauge(registry, 'bullpen_redis_unsafe')
  const writes = gauge(registry, 'bullpen_redis_write_failed')
  const lateLocks = counter(registry, 'bullpen_late_lock_renewals_total')
  const lockThreads = counter(registry, 'bullpen_lock_threads_restarted_total')
  const lostTasks = counter(registry, 'bullpen_redis_lost_tasks_total')
  const refused = counter(registry, 'bullpen_enqueues_refused_total')
  const eventStreams = gauge(registry, 'bullpen_event_streams')
  const unfinishedGroups = gauge(registry, 'bullpen_unfinished_groups')
  const groupsEnded = counter(registry, 'bullpen_groups_ended_total')
  const unfinishedRuns = gauge(registry, 'bullpen_unfinished_runs')
  const leader = gauge(registry, 'bullpen_leader')
  const housekeepingFailures = counter(registry, 'bullpen_housekeeping_failures_total')
  const lostWorkers = counter(registry, 'bullpen_lost_workers_total')
  const clockSkew = gauge(registry, 'bullpen_clock_skew_seconds')
  const scrapeFailures = counter(registry, 'bullpen_scrape_failures_total')
  const reads: (() => Promise<void> | void)[] = []

  const scrape = async () => {
    queues.reset()
    for (const each of [held, troubled, blocked, unsafe, writes, eventStreams, connections]) each.reset()
    for (const each of [redisUp, memoryUsed, memoryLimit, records, unfinishedGroups, unfinishedRuns]) each.remove()
    clockSkew.remove()
    const read = await Promise.allSettled([pools.read, ...reads].map(async (each) => each()))
    for (const each of read) if (each.status === 'rejected') scrapeFailures.inc(failuresIn(each.reason))
    const counted = [tasks, slos, enqueues, commands, runs, http].map((each) => each.exposition())
    const texts = [await registry.metrics(), ...counted]
    return { contentType: registry.contentType, text: texts.join('\n') }
  }
  let scraping: ReturnType<typeof scrape> | undefined

  return {
    sink: tasks.sink,
    publishTasks(definitions) {
      for (const { queue, name } of definitions) {
        tasks.publish(queue, name, about.role)
        lostTasks.inc({ queue }, 0)
        if (about.role === 'worker') lateLocks.inc({ queue }, 0)
      }
    },
    publishRefusals(queues, codes) {
      for (const queue of queues) for (const code of codes) refused.inc({ queue, code }, 0)
    },
    watchObjectives(definitions) {
      for (const { queue, name, slo } of definitions) {
        if (slo !== undefined) tasks.watchSlo(queue, name, slos.declare(queue, name, slo))
      }
    },
    watchPool: pools.watch,
    onScrape(read) {
      reads.push(read)
    },
    ...queues.set,
    enqueueTimed: enqueues.enqueueTimed,
    expectedDurations(definitions) {
      for (const { queue, name, expectedMs } of definitions) {
        if (expectedMs !== undefined) expected.set({ queue, task: name }, expectedMs / 1_000)
      }
    },
    heldRetries(queue, task, count) {
      held.set({ queue, task }, count)
    },
    troubledSchedules(queue, counts) {
      for (const [trouble, count] of Object.entries(counts)) troubled.set({ queue, trouble }, count)
    },
    blockedRequests(queue, count) {
      blocked.set({ queue }, count)
    },
    redisConnections({ ready, notReady }) {
      connections.set({ state: 'ready' }, ready)
      connections.set({ state: 'not_ready' }, notReady)
    },
    redisReplied: (seconds) => replies.observe(seconds),
    redisUp(up) {
      redisUp.set(up ? 1 : 0)
    },
    redisMemory(memory) {
      if (memory === undefined) return
      memoryUsed.set(memory.usedBytes)
      memoryLimit.set(memory.limitBytes)
    },
    idempotencyRecords(bytes) {
      if (bytes !== undefined) records.set(bytes)
    },
    redisProblems(problems) {
      for (const [check, isProblem] of problems) unsafe.set({ check }, isProblem ? 1 : 0)
    },
    redisWrites(failed) {
      for (const [write, hasFailed] of failed) writes.set({ write }, hasFailed ? 1 : 0)
    },
    locksLate(queue, locks) {
      lateLocks.inc({ queue }, locks)
    },
    lockThreadEnded() {
      lockThreads.inc()
    },
    workerLost() {
      lostWorkers.inc()
    },
    tasksLost({ queue, tasks: lost }) {
      lostTasks.inc({ queue }, lost)
    },
    enqueueRefused({ queue, code }) {
      refused.inc({ queue, code })
    },
    eventStreams(subject, count) {
      eventStreams.set({ subject }, count)
    },
    unfinishedGroups(count) {
      unfinishedGroups.set(count)
    },
    groupEnded(result) {
      groupsEnded.inc({ result })
    },
    unfinishedRuns(count) {
      unfinishedRuns.set(count)
    },
    runChanged: runs.changed,
    leader(isLeading) {
      leader.set(isLeading ? 1 : 0)
    },
    housekeepingFailed({ queue, duty }) {
      housekeepingFailures.inc({ queue, duty })
    },
    clockSkew(ms) {
      if (ms !== undefined) clockSkew.set(ms / 1_000)
    },
    httpObserved: http.observed,
    exposition() {
      scraping ??= scrape().finally(() => {
        scraping = undefined
      })
      return scraping
    },
  }
}

/** Returns how many reads have failed with this error. */
const failuresIn = (error: unknown): number => (error instanceof AggregateError ? error.errors.length : 1)

function poolGauges(registry: Registry) {
  const size = gauge(registry, 'bullpen_pool_slots')
  const busy = gauge(registry, 'bullpen_pool_slots_busy')
  const paused = gauge(registry, 'bullpen_pool_paused')
  const states = gauge(registry, 'bullpen_pool_state')
  const stuckHandlers = gauge(registry, 'bullpen_stuck_handlers')
  const slotStates = gauge(registry, 'bullpen_slot_state')
  const drainDeadline = gauge(registry, 'bullpen_drain_deadline_timestamp_seconds')
  const watched = new Set<WatchedPool>()
  return {
    watch(pool: WatchedPool): () => void {
      watched.add(pool)
      return () => watched.delete(pool)
    },
    read(): void {
      for (const each of [size, busy, paused, states, stuckHandlers, slotStates, drainDeadline]) each.reset()
      for (const pool of watched) {
        const { queue } = pool
        const now = pool.state()
        size.set({ queue }, pool.size())
        busy.set({ queue }, pool.busy())
        paused.set({ queue }, pool.status().paused ? 1 : 0)
        stuckHandlers.set({ queue }, pool.stuckHandlers())
        const drainsUntil = pool.drainsUntil()
        if (drainsUntil !== undefined) drainDeadline.set({ queue }, drainsUntil / 1_000)
        const slots = pool.slots()
        for (const state of SLOT_STATES) {
          slotStates.set({ queue, state }, slots.filter((slot) => slot.state === state).length)
        }
        for (const state of POOL_STATES) states.set({ queue, state }, state === now ? 1 : 0)
      }
    },
  }
}
