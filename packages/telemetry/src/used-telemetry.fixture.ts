// Telemetry in which every metric of the table has a value, and the text that it publishes.
import type { TaskEvent } from '@bullpen/contract'
import { expect } from 'vitest'
import { createTelemetry, type Telemetry } from './telemetry.ts'

export const about = { queue: 'mail', task: 'receipt.send', id: 'mail-1' }
export const attempt = { ...about, kind: 'long', fencingToken: 1, attempt: 1, correlationId: undefined } as const
export const ended = {
  ...attempt,
  event: 'attempt.ended',
  state: 'DONE_SUCCESS',
  reason: undefined,
  code: undefined,
  error: undefined,
  durationMs: 12,
  verdict: 'completed',
  delayMs: undefined,
} as const satisfies TaskEvent

const { delayMs: _, ...committed } = ended
export const REFUSED: TaskEvent = { ...committed, event: 'attempt.commit_refused', refusal: 'lock_taken' }

export const RECEIPT = { name: 'receipt.send', queue: 'mail' } as const

const stall = {
  task: 'receipt.send',
  id: 'mail-1',
  fencingToken: 1,
  attempt: 1,
  location: 'spin (/spin.ts:7)',
  stalledMs: 1_500,
}

const EVENTS: readonly TaskEvent[] = [
  { ...about, event: 'task.enqueued' },
  { event: 'task.refused', queue: 'mail', task: 'receipt.send', limit: 'maxTasks', action: 'rejected' },
  { ...attempt, event: 'attempt.started', waitedMs: 3 },
  { ...ended, taskMs: 15 },
  { ...ended, state: 'DONE_ERROR', code: 'card_declined', verdict: 'retrying', delayMs: 1_000 },
  { ...ended, state: 'RECOVER_ERR', reason: 'unexpected_error', verdict: 'dead' },
  { ...ended, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', verdict: 'cancelled' },
  REFUSED,
  { ...attempt, event: 'attempt.late', overrunMs: 5 },
  { event: 'isolate.replaced', isolation: 'process', isolate: 'process 7', cause: 'killed' },
  { ...about, event: 'task.cancelled' },
  { ...about, event: 'task.expired' },
  { ...about, event: 'task.dead', reason: 'process_lost' },
  { event: 'slots.restarted', queue: 'mail', slots: 4, afterMs: 500 },
  { ...stall, event: 'event_loop.stalled' },
  { ...stall, event: 'event_loop.stalled', task: undefined },
  { event: 'pool.state', queue: 'mail', from: 'NEW', to: 'BG_RUNNING' },
]

export function usedTelemetry(): Telemetry {
  const telemetry = createTelemetry({ role: 'worker', version: '1.2.3' })
  telemetry.watchObjectives([{ ...RECEIPT, slo: { startWithinMs: 30_000, objective: 0.99 } }])
  for (const event of EVENTS) telemetry.sink(event)
  telemetry.watchPool({
    queue: 'mail',
    size: () => 4,
    busy: () => 1,
    stuckHandlers: () => 2,
    drainsUntil: () => 1_700_000_030_500,
    state: () => 'BG_RUNNING',
    slots: () => [{ state: 'IDLE' }, { state: 'WORKING' }, { state: 'WORKING' }],
    status: () => ({ paused: false }),
  })
  telemetry.onScrape(() => {
    telemetry.queueTasks('mail', { waiting: 7, dead: 1 })
    const outbox = { entries: 3, oldestAt: 1_000 }
    const counts = { accepted: 90, ended: 80, recovered: 4, unaccounted: 0, drift: 2 }
    telemetry.queueTotals('mail', { bytes: 4_200, ...counts, outbox }, 3_500)
    const head = {
      oldest: { readyAt: 1_000 },
      nextReadyAt: undefined,
      blockedTasks: 2,
      oldestBlocked: { readyAt: 2_000 },
      isPaused: true,
      isDraining: false,
      unattached: { workers: ['old at 10.0.0.7:4242'] },
    }
    telemetry.queueHead('mail', head, 3_500)
    telemetry.queueLimits('mail', { maxTasks: 100, maxBytes: 8_400 })
    telemetry.breakers('mail', [{ service: 'smtp', state: 'open' }])
    telemetry.set('bullpen_held_retries', { queue: 'mail', task: 'mail.send' }, 12)
    for (const [trouble, count] of Object.entries({ failing: 1, overlapping: 0, missed: 0 })) {
      telemetry.set('bullpen_troubled_schedules', { queue: 'mail', trouble }, count)
    }
    telemetry.set('bullpen_blocked_requests', { queue: 'mail' }, 3)
    telemetry.brokerEvents.onHousekeepingFailed({ queue: 'mail', duty: 'expire' })
    telemetry.brokerEvents.onGroupEnded('failed')
    telemetry.set('bullpen_event_streams', { subject: 'group' }, 2)
    telemetry.set('bullpen_unfinished_groups', {}, 7)
    telemetry.set('bullpen_unfinished_runs', {}, 5)
    telemetry.set('bullpen_redis_up', {}, true)
    telemetry.setProcessGauges({ isLeading: true, connections: { ready: 2, notReady: 1 }, skewMs: -1_500 })
    telemetry.set('bullpen_redis_memory_used_bytes', {}, 800)
    telemetry.set('bullpen_redis_memory_limit_bytes', {}, 1_000)
    telemetry.set('bullpen_idempotency_records_bytes', {}, 150)
    telemetry.set('bullpen_redis_unsafe', { check: 'persistence' }, true)
    telemetry.set('bullpen_redis_write_failed', { write: 'aof' }, true)
  })
  telemetry.onScrape(() => Promise.reject(new Error('one gauge that can not be read')))
  telemetry.enqueueTimed('mail', 0.002)
  telemetry.expectedDurations([{ queue: 'mail', name: 'mail.send', expectedMs: 2_000 }])
  telemetry.redisReplied(0.0004)
  telemetry.count('bullpen_late_lock_renewals_total', { queue: 'mail' }, 3)
  telemetry.count('bullpen_lock_threads_restarted_total', {})
  telemetry.count('bullpen_enqueues_refused_total', { queue: 'mail', code: 'redis_full' })
  telemetry.brokerEvents.onWorkerLost()
  telemetry.brokerEvents.onLost({ queue: 'mail', tasks: 17 })
  const items = [{ stage: 2, outcome: 'dropped', count: 3 }]
  telemetry.brokerEvents.onRunChanged({ pipeline: 'digest', items, ended: { result: 'completed', durationMs: 400 } })
  telemetry.httpObserved({ method: 'POST', route: '/v1/tasks', status: 202, seconds: 0.004 })
  return telemetry
}

export async function textOf(telemetry: Telemetry): Promise<string> {
  const { contentType, text } = await telemetry.exposition()
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  return text
}
