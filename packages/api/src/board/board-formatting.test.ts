// Tests how stored jobs are shown on the board.
import type { TaskStatus } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { attemptRecord } from '../fake-broker.fixture.ts'
import { formatData, formatJob, formatReturnValue } from './board-formatting.ts'

const failed = attemptRecord({ state: 'DONE_ERROR', code: 'card_declined', message: 'no' })
const stackOf = (record: object) => `${JSON.stringify(record)}\nTaskError: no\n    at handler`

test('data shows the input first, and what was enqueued with it', () => {
  const stored = { v: 2, version: 2, input: { n: 4 }, meta: { tenant: 'acme' } }
  expect(formatData(stored)).toEqual({ input: { n: 4 }, meta: { tenant: 'acme' }, version: 2 })
})

test('the return value shows the output and the worker', () => {
  expect(formatReturnValue({ output: { value: 16 }, worker: 'host-1' })).toEqual({
    output: { value: 16 },
    worker: 'host-1',
  })
})

describe('the title of a job', () => {
  const title = (status: TaskStatus | undefined, ...records: object[]) =>
    formatJob({ name: 'receipt.send', stacktrace: records.map(stackOf) }, status).name
  const cancelled = attemptRecord({ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', by: 'ann' })
  const shutDown = attemptRecord({ state: 'TERMINATED_STOP_SIGNAL', reason: 'queue_shutdown' })
  const expired = attemptRecord({ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout' })
  const poisoned = attemptRecord({ state: 'RECOVER_ERR', reason: 'poison' })
  const drained = attemptRecord({ state: 'TERMINATED_CTX_CLOSED', reason: 'drain' })

  test.each<[string, TaskStatus | undefined, object[], string]>([
    ['is the status before the first attempt has ended', 'waiting', [], 'waiting'],
    [
      'shows the previous attempt of a retrying task',
      'retrying',
      [failed],
      'retrying · attempt 1 failed (card_declined)',
    ],
    ['shows the previous attempt of a requeued task', 'waiting', [drained], 'waiting · attempt 1 interrupted (drain)'],
    ['shows why a task is dead', 'dead', [failed], 'dead · failed (card_declined)'],
    ['shows that a task is poison', 'dead', [failed, poisoned], 'dead · panicked (poison)'],
    ['does not repeat the failures of a completed task', 'completed', [failed], 'completed'],
    ['names who cancelled a task', 'cancelled', [failed, cancelled], 'cancelled · by ann'],
    ['shows why a task was cancelled', 'cancelled', [shutDown], 'cancelled (queue_shutdown)'],
    ['shows why a task has expired', 'expired', [expired], 'expired (queue_timeout)'],
    ['shows only the status if the record of the end is missing', 'cancelled', [failed], 'cancelled'],
  ])('%s', (_title, status, records, expected) => {
    expect(title(status, ...records)).toBe(`receipt.send · ${expected}`)
  })

  test('is only the name if the status is unknown', () => {
    expect(title(undefined, failed)).toBe('receipt.send')
  })
})

describe('the stack of an attempt', () => {
  const firstLine = (record: object) =>
    String(formatJob({ name: 'x', stacktrace: [stackOf(record)] }, 'dead').stacktrace?.[0]).split('\n')

  test('begins with a readable summary of its record', () => {
    expect(firstLine(failed)).toEqual([
      'attempt 1 failed (card_declined) after 1000 ms on host-1',
      'TaskError: no',
      '    at handler',
    ])
  })

  test('shows the message without the state if no error ended the attempt', () => {
    const timedOut = attemptRecord({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout', message: '2 s passed' })
    const stack = `${JSON.stringify(timedOut)}\nTERMINATED_TIMEOUT (run_timeout): 2 s passed`
    const job = { name: 'x', stacktrace: [stack], failedReason: 'TERMINATED_TIMEOUT (run_timeout): 2 s passed' }
    expect(formatJob(job, 'dead')).toMatchObject({
      failedReason: 'timed out (run_timeout): 2 s passed',
      stacktrace: ['attempt 1 timed out (run_timeout) after 1000 ms on host-1\n2 s passed'],
    })
  })

  test('names who cancelled a task that never started', () => {
    const cancelled = attemptRecord({
      fencingToken: 0,
      state: 'TERMINATED_STOP_SIGNAL',
      reason: 'cancelled',
      by: 'ann (key 0813ba6d)',
    })
    expect(firstLine(cancelled)[0]).toBe('cancelled by ann (key 0813ba6d) before it started')
  })
})

test('a task that never started has a duration of zero', () => {
  const started = (job: object) => formatJob({ name: 'x', stacktrace: null, finishedOn: 7, ...job }, 'cancelled')
  expect(started({})).toMatchObject({ processedOn: 7, finishedOn: 7 })
  expect(started({ processedOn: 3 })).toMatchObject({ processedOn: 3 })
})

test('data that Bullpen did not write is shown unchanged', () => {
  for (const stored of [undefined, null, 'text', { other: 1 }]) {
    expect(formatData(stored)).toBe(stored)
    expect(formatReturnValue(stored)).toBe(stored)
  }
  const job = { name: 'x', stacktrace: ['Error: stalled\n at y', 'null', 7] }
  expect(formatJob(job, undefined)).toEqual(job)
  expect(formatJob({ name: 'x', stacktrace: null }, undefined)).toEqual({ name: 'x', stacktrace: [] })
})
