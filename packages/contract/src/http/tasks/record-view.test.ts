// Tests how the API returns a task's record.
import { describe, expect, test } from 'vitest'
import type { AttemptRecord } from '../../task/attempt-record.ts'
import { taskId } from '../../task/task-id.ts'
import type { TaskRecord } from '../../task/task-record.ts'
import { taskView } from './record-view.ts'
import { taskViewSchema } from './task-view.ts'

const anId = taskId('cpu-01jd3v7n8q0000000000000000')
const NOW = Date.parse('2026-01-02T03:04:05Z')

const WAITING: TaskRecord = {
  id: anId,
  task: 'math.square',
  version: 1,
  queue: 'cpu',
  status: 'waiting',
  fencingToken: 0,
  attemptsMade: 0,
  maxAttempts: 5,
  priority: 0,
  input: { n: 4 },
  meta: {},
  tags: [],
  correlationId: undefined,
  concurrencyKey: undefined,
  enqueuedAt: NOW,
  dueAt: undefined,
  startedAt: undefined,
  endedAt: undefined,
  progress: undefined,
  output: undefined,
  attempts: [],
}

function attemptRecord(more: Partial<AttemptRecord> = {}): AttemptRecord {
  const ended = { startedAt: 1_000, endedAt: 2_000 }
  return { fencingToken: 1, attempt: 1, counted: true, state: 'DONE_SUCCESS', worker: 'host-1', ...ended, ...more }
}

function view(more: Partial<TaskRecord>) {
  const shown = taskView({ ...WAITING, ...more })
  expect(taskViewSchema.parse(shown)).toEqual(shown)
  return shown
}

const failed = attemptRecord({ state: 'DONE_ERROR', code: 'card_declined', message: 'the bank said no', slot: 2 })
const drained = attemptRecord({
  counted: false,
  fencingToken: 2,
  state: 'TERMINATED_CTX_CLOSED',
  reason: 'drain',
  message: 'interrupted by a drain',
})

describe('a task', () => {
  test('that has not started has no error, no attempts, and only the time of its enqueueing', () => {
    expect(view({})).toEqual({
      id: anId,
      task: 'math.square',
      version: 1,
      queue: 'cpu',
      status: 'waiting',
      attemptsMade: 0,
      maxAttempts: 5,
      priority: 0,
      fencingToken: 0,
      input: { n: 4 },
      meta: {},
      tags: [],
      enqueuedAt: '2026-01-02T03:04:05.000Z',
      attempts: [],
      links: { self: `/v1/tasks/${anId}`, cancel: `/v1/tasks/${anId}/cancel` },
    })
  })

  test('that is completed shows its output, even null', () => {
    expect(view({ status: 'completed', output: null, attempts: [failed, attemptRecord()] }).output).toBeNull()
  })

  test('names its finished steps', () => {
    expect(view({ steps: ['pay', 'mail'] })).toMatchObject({ steps: ['pay', 'mail'] })
  })

  test('that is waiting for its next attempt shows when that attempt is due', () => {
    const shown = view({ status: 'retrying', dueAt: NOW + 1_500, startedAt: NOW + 5, attempts: [failed] })
    expect(shown).toMatchObject({ dueAt: '2026-01-02T03:04:06.500Z', startedAt: '2026-01-02T03:04:05.005Z' })
  })
})

describe('the error of a task', () => {
  const declined = { code: 'card_declined', message: 'the bank said no' }

  test.each([
    ['is the newest attempt’s if that failed', { status: 'retrying', attempts: [failed] }, declined],
    ['stays while the next attempt runs', { status: 'active', attempts: [failed] }, declined],
    ['is absent when a drain returned the task', { status: 'waiting', attempts: [failed, drained] }, undefined],
    ['is absent when the task is completed', { status: 'completed', attempts: [failed, attemptRecord()] }, undefined],
    [
      'is absent when the task was cancelled',
      { status: 'cancelled', attempts: [attemptRecord({ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' })] },
      undefined,
    ],
    [
      'is the reason of a timeout',
      {
        status: 'dead',
        attempts: [attemptRecord({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout', message: 'm' })],
      },
      { code: 'run_timeout', message: 'm' },
    ],
    [
      'is the reason of a panic',
      { status: 'dead', attempts: [attemptRecord({ state: 'RECOVER_ERR', reason: 'out_of_memory', message: 'm' })] },
      { code: 'out_of_memory', message: 'm' },
    ],
    [
      'is present on every dead task',
      { status: 'dead', attempts: [drained] },
      { code: 'drain', message: 'interrupted by a drain' },
    ],
    [
      'says why a task expired',
      {
        status: 'expired',
        attempts: [attemptRecord({ fencingToken: 0, state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout' })],
      },
      { code: 'queue_timeout', message: '' },
    ],
  ] as const)('%s', (_title, record, error) => {
    expect(view({ ...record, attempts: [...record.attempts] }).error).toEqual(error)
  })
})

describe('an attempt', () => {
  test('shows its outcome, its state, and the reason why it did not succeed', () => {
    expect(view({ attempts: [failed, drained] }).attempts).toEqual([
      {
        attempt: 1,
        fencingToken: 1,
        counted: true,
        outcome: 'failed',
        state: 'DONE_ERROR',
        error: { code: 'card_declined', message: 'the bank said no' },
        worker: 'host-1',
        slot: 2,
        startedAt: '1970-01-01T00:00:01.000Z',
        endedAt: '1970-01-01T00:00:02.000Z',
      },
      {
        attempt: 1,
        fencingToken: 2,
        counted: false,
        outcome: 'interrupted',
        state: 'TERMINATED_CTX_CLOSED',
        error: { code: 'drain', message: 'interrupted by a drain' },
        worker: 'host-1',
        startedAt: '1970-01-01T00:00:01.000Z',
        endedAt: '1970-01-01T00:00:02.000Z',
      },
    ])
  })

  test('that succeeded has no error', () => {
    expect(view({ attempts: [attemptRecord()] }).attempts[0]).not.toHaveProperty('error')
  })

  test('names who cancelled the task', () => {
    const cancelled = attemptRecord({ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', by: 'ann (key 0813ba6d)' })
    expect(view({ attempts: [cancelled] }).attempts).toMatchObject([{ outcome: 'cancelled', by: 'ann (key 0813ba6d)' }])
  })
})
