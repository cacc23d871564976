// Tests how stored jobs are shown on the board.
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
  const job = { name: 'receipt.send', returnvalue: null, stacktrace: [stackOf(failed)], processedOn: 1 }

  test.each([
    ['has no outcome before the first attempt has ended', { stacktrace: [] }, 'receipt.send'],
    [
      'shows how the previous attempt ended while the task is open',
      {},
      'receipt.send · attempt 1 failed (card_declined)',
    ],
    ['shows why a task is dead', { finishedOn: 2 }, 'receipt.send · failed (card_declined)'],
    [
      'shows that a task succeeded',
      { finishedOn: 2, returnvalue: { output: 1, worker: 'host-1' } },
      'receipt.send · succeeded',
    ],
    [
      'shows that a task was cancelled',
      { finishedOn: 2, stacktrace: [stackOf(attemptRecord({ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }))] },
      'receipt.send · cancelled',
    ],
  ])('%s', (_title, more, name) => {
    expect(formatJob({ ...job, ...more }).name).toBe(name)
  })
})

describe('the stack of an attempt', () => {
  const firstLine = (record: object) =>
    String(formatJob({ name: 'x', stacktrace: [stackOf(record)] }).stacktrace?.[0]).split('\n')

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
    expect(formatJob(job)).toMatchObject({
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
  expect(formatJob({ name: 'x', stacktrace: null, finishedOn: 7 })).toMatchObject({ processedOn: 7, finishedOn: 7 })
  expect(formatJob({ name: 'x', stacktrace: null, processedOn: 3, finishedOn: 7 })).toMatchObject({ processedOn: 3 })
})

test('data that Bullpen did not write is shown unchanged', () => {
  for (const stored of [undefined, null, 'text', { other: 1 }]) {
    expect(formatData(stored)).toBe(stored)
    expect(formatReturnValue(stored)).toBe(stored)
  }
  const job = { name: 'x', stacktrace: ['Error: stalled\n at y', 'null', 7] }
  expect(formatJob(job)).toEqual(job)
  expect(formatJob({ name: 'x', stacktrace: null })).toEqual({ name: 'x', stacktrace: [] })
})
