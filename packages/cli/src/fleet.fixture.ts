// An example fleet in the form that the API returns.
import type { CommandView, FleetView, LimitsView, QueuePage, QueueView, SlotView, WorkerView } from '@bullpen/contract'

export const P1 = 'worker-7d9f:12:a3f84945'
export const P2 = 'worker-8e0a:1:0badcafe'
export const NOW = '2026-01-01T00:10:00.000Z'

const ago = (seconds: number): string => new Date(Date.parse(NOW) - seconds * 1_000).toISOString()

type Pool = WorkerView['pools'][number]

export function pool(more: Partial<Pool> = {}): Pool {
  return {
    ...{
      queue: 'cpu',
      state: 'BG_RUNNING',
      label: 'running',
      paused: false,
      concurrency: 4,
      busy: 1,
      stuckHandlers: 0,
    },
    ...more,
  }
}

export function workerOf(worker: string, more: Partial<WorkerView> = {}): WorkerView {
  return {
    ...{ worker, host: worker.split(':')[0] ?? '', pid: 12, version: '0.2.0', startedAt: ago(600), seenAt: ago(1) },
    ...{ alive: true, draining: false, skewMs: 0, drainTimeoutMs: 20_000, graceMs: 5_000, pools: [pool()] },
    ...more,
  }
}

export function queueOf(queue: string, more: Partial<QueueView> = {}): QueueView {
  return { queue, admission: 'open', paused: false, pools: 1, slots: 4, busy: 1, ...more }
}

export function fleetOf(workers: readonly WorkerView[], queues: readonly QueueView[] = [queueOf('cpu')]): FleetView {
  return { now: NOW, queues: [...queues], workers: [...workers] }
}

/** A queue that is paused and limited. */
export const QUEUES: QueuePage = {
  now: NOW,
  queues: [
    {
      ...queueOf('cpu', { paused: true, maxTasks: 500 }),
      tasks: { waiting: 12, active: 3, scheduled: 0, retrying: 1, completed: 90, dead: 9, cancelled: 0, expired: 0 },
      deadByFingerprint: [
        {
          ...{ fingerprint: '0123456789abcdef', state: 'DONE_ERROR', code: 'http_503', count: 7 },
          message: 'the provider responded with status # to request # of the customer # of this tenant',
          ...{ oldestAt: ago(90), newestAt: ago(90), newestId: 'cpu-01jd3v7n8q0000000000000001' },
        },
      ],
      bytes: 4_096,
      oldestWaiting: {
        ...{ id: 'cpu-01jd3v7n8q0000000000000000', task: 'math.factorial' },
        ...{ enqueuedAt: ago(90), readyAt: ago(30) },
      },
      blockedTasks: 0,
      rates: { in: 4.5, out: 3, overMs: 60_000 },
    },
  ],
}

export const TASK = {
  id: 'cpu-01jd3v7n8q0000000000000000',
  task: 'math.factorial',
  fencingToken: 1,
  kind: 'long',
} as const

/** Returns a slot that has been running its task for `seconds`. */
export function busy(slot: number, seconds: number, task: Partial<SlotView['task']> = {}): SlotView {
  return {
    worker: P1,
    queue: 'cpu',
    slot,
    state: 'WORKING',
    label: 'running a task',
    since: ago(seconds),
    task: { ...TASK, ...task },
  }
}

export function idle(slot: number): SlotView {
  return { worker: P1, queue: 'cpu', slot, state: 'IDLE', label: 'idle', since: ago(60) }
}

export function commandView(spec: CommandView['spec'], more: Partial<CommandView> = {}): CommandView {
  return { id: 'c1', spec, by: 'ann (key 3fa29c01)', at: NOW, outcome: 'done', responses: [], ...more }
}

const definition = { source: 'definition' } as const
const command = { source: 'command' } as const

export const LIMITS: LimitsView = {
  ...{ queue: 'reports', now: '2026-01-01T00:00:00.000Z', paused: true, takesTurns: true },
  limits: {
    concurrency: { max: 10, ...command },
    maxBytes: { max: 67_108_864, ...definition },
    perApiKey: {
      enqueueRate: { max: 100, perMs: 1_000, ...definition },
      apiKeys: [{ name: 'shop', maxUnfinishedTasks: { max: 8, ...command } }],
    },
    perConcurrencyKey: {
      concurrency: { max: 2, ...definition },
      rate: { max: 100, perMs: 60_000, burst: 1, ...command },
      ofSingleKeys: 4,
      singleKeys: [{ key: 'gold', concurrency: { max: 4, ...command } }],
    },
    limiters: [
      { kind: 'definition', name: 'reports.render', capacity: 5, inUse: 5, ...command },
      { kind: 'permits', name: 'db', capacity: 10, inUse: 3, ...definition },
    ],
    weights: { ofSingleKeys: 1, singleKeys: [{ key: 'gold', weight: 3 }] },
  },
  breakers: [
    {
      ...{ service: 'smtp', state: 'open', mode: 'auto', calls: 0, failures: 0, slow: 0 },
      ...{ since: '2025-12-31T23:59:30.000Z', startsAt: '2026-01-01T00:00:30.000Z' },
    },
  ],
  keys: {
    ...{ waitingKeys: 2, waitingTasks: 98_001, exact: true },
    items: [
      {
        ...{ key: 'gold', weight: 3, waiting: 98_000, active: 4, blockedBy: ['concurrency', 'rate'] },
        ...{ concurrency: { max: 4, ...command, isOwn: true }, nextStartAt: '2026-01-01T00:00:03.000Z' },
        rate: { max: 100, perMs: 60_000, burst: 10, ...definition, isOwn: true },
      },
      { key: 'a\u001b[2J b', weight: 1, waiting: 1, active: 0, blockedBy: [] },
    ],
  },
}
