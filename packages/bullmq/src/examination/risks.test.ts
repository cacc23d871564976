// Tests from which figures on a check finds a risk.
import { describe, expect, it } from 'vitest'
import { reportOf } from './examine.ts'
import type { BullmqServerFacts, JobFacts, QueueFacts } from './facts.ts'
import type { BullmqCheck } from './risk-table.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE

const HEALTHY_INFO = {
  redis_version: '7.2.4',
  maxmemory_policy: 'noeviction',
  aof_enabled: 1,
  used_memory: 100_000_000,
  maxmemory: 1_000_000_000,
  connected_clients: 10,
  maxclients: 10_000,
}

const JOB: JobFacts = {
  ...{ place: 'waiting', readyAt: NOW - 1_000, startedAt: undefined, finishedAt: undefined, maxAttempts: 3 },
  ...{
    isRemoved: true,
    isLocked: undefined,
    dataBytes: 100,
    resultBytes: 10,
    memoryBytes: 500,
    failedReason: undefined,
  },
}
const active = (of: Partial<JobFacts>): JobFacts => ({ ...JOB, place: 'active', isLocked: true, startedAt: NOW, ...of })
const ended = (place: 'completed' | 'failed', of: Partial<JobFacts> = {}): JobFacts => ({
  ...{ ...JOB, place, startedAt: NOW - 2_000, finishedAt: NOW - 1_000 },
  ...of,
})

const COUNTS = { waiting: 3, prioritized: 0, active: 1, delayed: 2, waitingChildren: 0, completed: 50, failed: 10 }
const QUEUE: QueueFacts = {
  ...{ prefix: 'bull', name: 'mail', counts: COUNTS, isPaused: false, hasMarker: true, workers: 2 },
  ...{
    events: { length: 10_100, max: 10_000 },
    overdue: { jobs: 0, firstDueAt: undefined },
    nextScheduledAt: undefined,
  },
  sample: [JOB, active({}), ended('completed'), ended('failed')],
}

function found(queue: Partial<QueueFacts>, info: object = {}, save = '3600 1') {
  const text = Object.entries({ ...HEALTHY_INFO, ...info }).map(([name, value]) => `${name}:${value}\r\n`)
  const description = { info: text.join(''), listpackValue: undefined }
  const facts: BullmqServerFacts = {
    node: '',
    description,
    save,
    now: NOW,
    queues: [{ ...QUEUE, ...queue }],
    scattered: [],
  }
  return reportOf([facts], true).findings.map(({ check, severity }) => `${severity} ${check}`)
}

describe('a check of plain BullMQ', () => {
  it('finds nothing in a healthy queue', () => {
    expect(found({})).toEqual([])
  })

  it.each<[`${'error' | 'warning'} ${BullmqCheck}`, Partial<QueueFacts>, Partial<QueueFacts>]>([
    ['error no_workers', { workers: 0 }, { workers: 0, counts: { ...COUNTS, waiting: 0 } }],
    [
      'error no_workers',
      { workers: 0, counts: { ...COUNTS, waiting: 0 }, overdue: { jobs: 1, firstDueAt: NOW - HOUR } },
      {},
    ],
    [
      'warning long_wait',
      { sample: [{ ...JOB, readyAt: NOW - 6 * MINUTE }] },
      { sample: [{ ...JOB, readyAt: NOW - 4 * MINUTE }] },
    ],
    ['warning paused', { isPaused: true }, { isPaused: true, counts: { ...COUNTS, waiting: 0 } }],
    [
      'error expired_locks',
      { sample: [active({ isLocked: false, startedAt: NOW - 2 * MINUTE })] },
      { sample: [active({ isLocked: false, startedAt: NOW - MINUTE / 2 })] },
    ],
    [
      'warning long_runs',
      { sample: [active({ startedAt: NOW - 2 * HOUR })] },
      { sample: [active({ startedAt: NOW - HOUR / 2 })] },
    ],
    [
      'error overdue_jobs',
      { overdue: { jobs: 2, firstDueAt: NOW - HOUR } },
      { overdue: { jobs: 2, firstDueAt: NOW - HOUR }, isPaused: true, counts: { ...COUNTS, waiting: 0 } },
    ],
    ['warning late_schedulers', { nextScheduledAt: NOW - 2 * MINUTE }, { nextScheduledAt: NOW + MINUTE }],
    [
      'warning kept_completed',
      { counts: { ...COUNTS, completed: 1_000 }, sample: [ended('completed', { isRemoved: false })] },
      { counts: { ...COUNTS, completed: 1_000 }, sample: [ended('completed')] },
    ],
    [
      'error kept_completed',
      { counts: { ...COUNTS, completed: 1_000_000 }, sample: [ended('completed', { isRemoved: false })] },
      { counts: { ...COUNTS, completed: 999 }, sample: [ended('completed', { isRemoved: false })] },
    ],
    [
      'warning kept_failed',
      { counts: { ...COUNTS, failed: 5_000 }, sample: [ended('failed', { isRemoved: false })] },
      { counts: { ...COUNTS, failed: 500 }, sample: [ended('failed', { isRemoved: false })] },
    ],
    [
      'warning no_retries',
      { sample: [ended('failed', { maxAttempts: 1 })] },
      { sample: [ended('failed', { maxAttempts: 1 }), ...Array.from({ length: 20 }, () => ended('failed'))] },
    ],
    [
      'warning stalled_jobs',
      { sample: [ended('failed', { failedReason: 'job stalled more than allowable limit' })] },
      { sample: [ended('failed', { failedReason: 'the job stalled my car' })] },
    ],
    [
      'warning large_payloads',
      { sample: [{ ...JOB, resultBytes: 100_000 }] },
      { sample: [{ ...JOB, dataBytes: 99_999 }] },
    ],
    ['warning long_events', { events: { length: 25_000, max: 10_000 } }, { events: { length: 900, max: 10 } }],
    [
      'warning long_events',
      { events: { length: 60_000, max: 1_000_000 } },
      { events: { length: 19_000, max: 10_000 } },
    ],
  ])('finds %s in %j, but not in %j', (finding, ill, well) => {
    expect(found(ill)).toEqual([finding])
    expect(found(well)).toEqual([])
  })

  it.each<[`${'error' | 'warning'} ${BullmqCheck}`, object, string?]>([
    ['warning redis_version', { redis_version: '6.0.16' }],
    ['error redis_version', { redis_version: '4.0.9' }],
    ['error redis_eviction', { maxmemory_policy: 'allkeys-lru' }],
    ['warning redis_persistence', { aof_enabled: 0 }],
    ['error redis_persistence', { aof_enabled: 0 }, ''],
    ['error redis_writes', { rdb_last_bgsave_status: 'err' }],
    ['warning redis_memory', { maxmemory: 0 }],
    ['error redis_memory', { used_memory: 800_000_000 }],
    ['warning redis_connections', { connected_clients: 8_000 }],
  ])('finds %s if INFO has %j', (finding, info, save) => {
    expect(found({}, info, save)).toEqual([finding])
  })

  it('is skipped if Redis does not permit what it needs', () => {
    const description = { info: undefined, listpackValue: undefined }
    const queues = [{ ...QUEUE, workers: undefined }]
    const { skipped, findings } = reportOf(
      [{ node: '', description, save: undefined, now: NOW, queues, scattered: [] }],
      true,
    )
    expect([findings, skipped]).toEqual([
      [],
      [
        'redis_version',
        'redis_eviction',
        'redis_persistence',
        'redis_writes',
        'redis_memory',
        'redis_connections',
        'no_workers',
      ],
    ])
  })
})
