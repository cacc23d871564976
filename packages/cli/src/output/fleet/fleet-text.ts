// Formats the fleet as text: its queues, its workers with their pools, and its slots.
import {
  type FleetView,
  formatDuration,
  type PoolState,
  type QueueView,
  type SlotState,
  type SlotView,
  type WorkerView,
} from '@bullpen/contract'
import { formatBytes } from '@bullpen/contract/internal'
import { type Cell, type Layout, tableLines, tableRows } from '../columns.ts'
import { count, formatLength, plain, relativeTime } from '../format.ts'
import { BREAKER_HEADING, breakerCells, breakerLabel } from './breaker-cells.ts'

/** The smallest clock difference that is reported. */
const MIN_SKEW_MS = 100
/** From which time within a minute a blocked event loop is reported, as by bullpen doctor. */
const MIN_STALLED_MS = 10_000

/**
 * Formats the queues, the workers and, if `slots` is given, the slots, sorted by name. Times are relative to the fleet's clock,
 * not to this machine's.
 */
export function fleetLines(fleet: FleetView, slots: readonly SlotView[] = [], given: Layout): readonly string[] {
  const layout = { ...given, now: Date.parse(fleet.now) }
  const pausedQueues = new Set(fleet.queues.filter(({ paused }) => paused).map(({ queue }) => queue))
  const workers = fleet.workers.toSorted((a, b) => compare(a.worker, b.worker))
  const heading = ['queue', 'busy', 'pools', 'state']
  return [
    ...tableLines([heading, ...fleet.queues.map((queue) => queueRow(queue, layout.now))], { ...layout, indent: 0 }),
    '',
    ...(fleet.logLevel === undefined ? [] : [...logLevelLines(fleet), '']),
    ...(workers.length === 0 ? ['no workers are running'] : []),
    ...workers.flatMap((worker) => workerLines(worker, { slots, pausedQueues, layout })),
  ]
}

/** Says which log level a command has set for all processes, and until when. */
export function logLevelLines({ now, logLevel }: Pick<FleetView, 'now' | 'logLevel'>): readonly string[] {
  if (logLevel === undefined) return ['every process logs at the level of its settings']
  const { level, until, by } = logLevel
  return [`every process logs at ${level}, set by ${plain(by)}; it ends ${relativeTime(until, Date.parse(now))}`]
}

/** Returns a line for each circuit breaker. */
export function breakerLines({ now, queues }: Pick<FleetView, 'now' | 'queues'>, given: Layout): readonly string[] {
  const layout = { ...given, now: Date.parse(now), indent: 0 }
  const rows = queues.flatMap(({ queue, breakers = [] }) =>
    breakers.map((breaker) => [plain(queue), plain(breaker.service), ...breakerCells(breaker, layout.now)]),
  )
  if (rows.length === 0) {
    const [only] = queues.length === 1 ? queues : []
    return [only === undefined ? 'no queue has circuit breakers' : `${plain(only.queue)} has no circuit breakers`]
  }
  return tableLines([['queue', 'service', ...BREAKER_HEADING], ...rows], layout)
}

function queueRow(view: QueueView, now: number): Cell[] {
  const { queue, busy, slots, pools } = view
  return [plain(queue), `${busy}/${slots}`, String(pools), queueStateCell(view, now)]
}

/** Returns what is unusual about a queue, or `open`, followed by its limits. `obstacles` are unusual, too. */
export function queueStateCell(view: QueueView, now: number, obstacles: readonly string[] = []): Cell {
  const { paused, outboxFull, drain, concurrency, rate, perConcurrencyKey, limiters, maxTasks, maxBytes, maxAgeMs } =
    view
  const { breakers = [] } = view
  const unusual = [
    ...obstacles,
    ...(drain === undefined ? [] : [`draining (${drain.mode}), started ${relativeTime(drain.since, now)}`]),
    ...(paused ? ['paused'] : []),
    ...(outboxFull ? ['outbox full'] : []),
    ...breakers.flatMap(({ service, state }) =>
      state === 'closed' ? [] : [`breaker ${plain(service)} ${breakerLabel(state)}`],
    ),
  ]
  const limits = [
    ...(concurrency === undefined ? [] : [`at most ${concurrency} at once`]),
    ...(rate === undefined ? [] : [`at most ${count(rate.max, 'start')} per ${formatLength(rate.perMs)}`]),
    ...keyLimitTexts(perConcurrencyKey),
    ...(limiters ?? []).map(limiterText),
    ...(maxTasks === undefined ? [] : [`at most ${count(maxTasks, 'task')}`]),
    ...(maxBytes === undefined ? [] : [`at most ${formatBytes(maxBytes)} of tasks`]),
    ...(maxAgeMs === undefined ? [] : [`waiting for at most ${formatDuration(maxAgeMs)}`]),
  ]
  const state = [...(unusual.length === 0 ? ['open'] : unusual), ...limits].join(', ')
  return unusual.length === 0 ? state : ['yellow', state]
}

function limiterText({ kind, name, capacity, inUse }: NonNullable<QueueView['limiters']>[number]): string {
  const what = kind === 'permits' ? `${name} ${capacity === 1 ? 'permit' : 'permits'} in use` : `${name} at once`
  return plain(`${inUse} of ${capacity} ${what}`)
}

function keyLimitTexts(limits: QueueView['perConcurrencyKey']): readonly string[] {
  if (limits === undefined) return []
  const { concurrency, rate, ofSingleKeys } = limits
  return [
    ...(concurrency === undefined ? [] : [`at most ${concurrency} at once per key`]),
    ...(rate === undefined ? [] : [`at most ${count(rate.max, 'start')} per ${formatLength(rate.perMs)} and key`]),
    ...(ofSingleKeys === 0 ? [] : [`${count(ofSingleKeys, 'limit')} of single keys`]),
  ]
}

interface Shown {
  readonly slots: readonly SlotView[]
  readonly pausedQueues: ReadonlySet<string>
  readonly layout: Layout
}

function workerLines(worker: WorkerView, { slots, pausedQueues, layout }: Shown): readonly string[] {
  const name = plain(worker.worker)
  const pools = worker.pools.toSorted((a, b) => compare(a.queue, b.queue))
  const rows = tableRows(
    pools.map((pool) => poolRow(pool, pausedQueues.has(pool.queue))),
    { ...layout, indent: 2 },
  )
  return [
    ...tableLines([[worker.alive ? name : ['red', name], workerText(worker, layout.now)]], { ...layout, indent: 0 }),
    ...pools.flatMap(({ queue }, i) => [
      ...(rows[i] ?? []),
      ...slotLines(
        slots.filter((slot) => slot.worker === worker.worker && slot.queue === queue),
        layout,
      ),
    ]),
  ]
}

function workerText(shown: WorkerView, now: number): string {
  const { worker, host, alive, seenAt, startedAt, version, draining, skewMs, stalls } = shown
  return [
    alive ? (draining ? 'draining' : '') : `no heartbeat for ${formatLength(now - Date.parse(seenAt))}`,
    alive ? `up ${formatLength(now - Date.parse(startedAt))}` : '',
    worker.startsWith(host) ? '' : `on ${plain(host)}`,
    `version ${plain(version)}`,
    skewText(skewMs),
    stallText(stalls),
  ]
    .filter(Boolean)
    .join(', ')
}

/** Returns an empty string if the event loop was blocked for a short time only. */
export function stallText(stalls: WorkerView['stalls']): string {
  if (stalls === undefined || stalls.stalledMs < MIN_STALLED_MS) return ''
  const by = stalls.lastTask === undefined ? '' : `, last by ${plain(stalls.lastTask)}`
  return `event loop blocked for ${formatLength(stalls.stalledMs)} of the last minute${by}`
}

/** Returns an empty string if the difference is small. */
export function skewText(skewMs: number): string {
  if (Math.abs(skewMs) < MIN_SKEW_MS) return ''
  return `clock ${formatLength(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} Redis`
}

type Pool = WorkerView['pools'][number]

export const RUNNING_POOL_STATES: readonly PoolState[] = ['BG_RUNNING', 'ONLINE_RUNNING']

function poolRow(pool: Pool, queueIsPaused: boolean): Cell[] {
  const { queue, state, busy, concurrency, paused } = pool
  const isRunning = RUNNING_POOL_STATES.includes(state)
  const isPaused = isRunning && (paused || queueIsPaused)
  const label = isPaused ? 'paused' : plain(pool.label)
  return [
    plain(queue),
    isRunning && !isPaused ? label : ['yellow', label],
    `${busy}/${concurrency}`,
    poolRemarks(pool).join(', '),
  ]
}

/** Returns what is unusual about a pool, apart from its state. */
export function poolRemarks({ stuckHandlers, notReady }: Pool): readonly string[] {
  return [
    ...(stuckHandlers === 0 ? [] : [count(stuckHandlers, 'stuck handler')]),
    ...(notReady === undefined ? [] : [`not accepting tasks: ${plain(notReady)}`]),
  ]
}

const QUIET: readonly SlotState[] = ['NEW', 'IDLE']

function slotLines(slots: readonly SlotView[], layout: Layout): readonly string[] {
  const rows = slots
    .toSorted((a, b) => a.slot - b.slot)
    .map((slot): Cell[] => {
      const { state, since, task } = slot
      const label = plain(slot.label)
      return [
        slotName(slot),
        QUIET.includes(state) ? label : [state === 'WORKING' ? 'cyan' : 'yellow', label],
        formatLength(layout.now - Date.parse(since)),
        plain(task?.task ?? ''),
        plain(task?.id ?? ''),
      ]
    })
  return tableLines(rows, { ...layout, indent: 4 })
}

/** Returns a slot's name in the form that `bullpen stop` accepts. */
function slotName({ worker, queue, slot }: SlotView): string {
  return `${plain(worker)}/${plain(queue)}/${slot}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
