// Collects the metrics of a process: counts events, reads gauges at each scrape, and renders both for Prometheus.
import type { PoolState, SlotState, TaskDefinition } from '@bullpen/contract'
import { POOL_STATES, SLOT_STATES } from '@bullpen/contract/internal'
import type { EventSink } from '@bullpen/engine'
import { type Counter, collectDefaultMetrics, type Gauge, Registry } from 'prom-client'
import { type EnqueueMetrics, enqueueMetrics } from './metrics/enqueue-metrics.ts'
import { taskMetrics } from './metrics/event-metrics.ts'
import { type AnsweredRequest, httpMetrics } from './metrics/http-metrics.ts'
import { counter, fastHistogram, gauge, type LabelsOf } from './metrics/instruments.ts'
import { METRICS, type MetricName, MISNAMED_PROCESS_METRICS } from './metrics/metrics-table.ts'
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

/** The gauges that are set at each scrape, each by one part of the process. */
const SET_GAUGES = [
  'bullpen_held_retries',
  'bullpen_troubled_schedules',
  'bullpen_blocked_requests',
  'bullpen_redis_up',
  'bullpen_redis_connections',
  'bullpen_redis_memory_used_bytes',
  'bullpen_redis_memory_limit_bytes',
  'bullpen_idempotency_records_bytes',
  'bullpen_redis_unsafe',
  'bullpen_redis_write_failed',
  'bullpen_event_streams',
  'bullpen_unfinished_groups',
  'bullpen_unfinished_runs',
  'bullpen_leader',
  'bullpen_clock_skew_seconds',
] as const satisfies readonly MetricName[]
type SetGauge = (typeof SET_GAUGES)[number]

/** The counters of events that are rarer than tasks. */
const COUNTED_EVENTS = [
  'bullpen_late_lock_renewals_total',
  'bullpen_lock_threads_restarted_total',
  'bullpen_redis_lost_tasks_total',
  'bullpen_enqueues_refused_total',
  'bullpen_groups_ended_total',
  'bullpen_housekeeping_failures_total',
  'bullpen_lost_workers_total',
] as const satisfies readonly MetricName[]
type CountedEvent = (typeof COUNTED_EVENTS)[number]

export interface Telemetry extends QueueGauges, Pick<EnqueueMetrics, 'enqueueTimed'> {
  /** Counts and times events. A call takes less than a microsecond and never throws. */
  readonly sink: EventSink
  /**
   * Publishes the counters of these definitions' tasks and queues from 0, because Prometheus's rate() does not see the increment with
   * which a series appears. Call it once: with the whole catalogue in an API process, and with the served queues' definitions in a worker.
   */
  publishTasks(definitions: readonly Pick<TaskDefinition, 'name' | 'queue'>[]): void
  /** Publishes `bullpen_enqueues_refused_total` from 0 for each of these queues and codes. */
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
  /** Sets a gauge, unless the value is undefined. Call it from {@link onScrape} at every scrape, because it is omitted otherwise. */
  set<N extends SetGauge>(name: N, labels: LabelsOf<N>, value: number | boolean | undefined): void
  /** Counts one event, or as many as are given. */
  count<N extends CountedEvent>(name: N, labels: LabelsOf<N>, events?: number): void
  /** Sets the gauges that every process has. Call it from {@link onScrape} at every scrape. */
  setProcessGauges(state: {
    readonly isLeading: boolean
    /** How many of this process's connections to Redis are ready, and how many are not. */
    readonly connections: { readonly ready: number; readonly notReady: number }
    /** How far this machine's clock is ahead of Redis's, in ms, if that is known. */
    readonly skewMs: number | undefined
  }): void
  /** Counts what a broker reports of its namespace. */
  readonly brokerEvents: {
    onGroupEnded(result: string): void
    onRunChanged(run: ChangedRun): void
    onHousekeepingFailed(failure: { readonly queue: string; readonly duty: string }): void
    /** Tasks of a queue that were acknowledged and that Redis has lost. */
    onLost(lost: { readonly queue: string; readonly tasks: number }): void
    /** A worker that stopped sending heartbeats without leaving the fleet. */
    onWorkerLost(): void
  }
  /** Adds the time that a command has waited for Redis's reply. A call takes less than a microsecond. */
  redisReplied(seconds: number): void
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
  const commands = fastHistogram('bullpen_redis_command_duration_seconds')
  const replies = commands.series({})
  const gauges = new Map<string, Gauge>(SET_GAUGES.map((name) => [name, gauge(registry, name) as Gauge]))
  const counters = new Map<string, Counter>(COUNTED_EVENTS.map((name) => [name, counter(registry, name) as Counter]))
  const scrapeFailures = counter(registry, 'bullpen_scrape_failures_total')
  const set: Telemetry['set'] = (name, labels, value) => {
    if (value !== undefined) gauges.get(name)?.set(labels, Number(value))
  }
  const count: Telemetry['count'] = (name, labels, events = 1) => counters.get(name)?.inc(labels, events)
  const reads: (() => Promise<void> | void)[] = []

  const scrape = async () => {
    queues.reset()
    // A gauge without labels would be 0 after a reset.
    for (const name of SET_GAUGES) {
      if (METRICS[name].labels.length === 0) gauges.get(name)?.remove()
      else gauges.get(name)?.reset()
    }
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
        count('bullpen_redis_lost_tasks_total', { queue }, 0)
        if (about.role === 'worker') count('bullpen_late_lock_renewals_total', { queue }, 0)
      }
    },
    publishRefusals(queues, codes) {
      for (const queue of queues) for (const code of codes) count('bullpen_enqueues_refused_total', { queue, code }, 0)
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
    set,
    count,
    setProcessGauges({ isLeading, connections: { ready, notReady }, skewMs }) {
      set('bullpen_leader', {}, isLeading)
      set('bullpen_redis_connections', { state: 'ready' }, ready)
      set('bullpen_redis_connections', { state: 'not_ready' }, notReady)
      set('bullpen_clock_skew_seconds', {}, skewMs === undefined ? undefined : skewMs / 1_000)
    },
    brokerEvents: {
      onGroupEnded: (result) => count('bullpen_groups_ended_total', { result }),
      onRunChanged: runs.changed,
      onHousekeepingFailed: ({ queue, duty }) => count('bullpen_housekeeping_failures_total', { queue, duty }),
      onLost: ({ queue, tasks: lost }) => count('bullpen_redis_lost_tasks_total', { queue }, lost),
      onWorkerLost: () => count('bullpen_lost_workers_total', {}),
    },
    redisReplied: (seconds) => replies.observe(seconds),
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
