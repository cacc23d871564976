// Tests the schema of a task as the API returns it.
import { describe, expect, test } from 'vitest'
import { ATTEMPT_STATE_LABELS, TASK_STATUSES } from '../../task/states.ts'
import { ATTEMPT_OUTCOMES, taskPageSchema, taskViewSchema } from './task-view.ts'

const time = '2026-01-01T00:00:00.000Z'
const attempt = {
  attempt: 1,
  fencingToken: 1,
  counted: true,
  outcome: 'failed',
  state: 'DONE_ERROR',
  error: { code: 'card_declined', message: 'no' },
  worker: 'host:1',
  slot: 1,
  startedAt: time,
  endedAt: time,
}
const task = {
  id: 'x',
  task: 'math.square',
  version: 1,
  queue: 'cpu',
  status: 'completed',
  attemptsMade: 1,
  maxAttempts: 5,
  priority: 0,
  fencingToken: 1,
  input: { n: 4 },
  output: 16,
  meta: {},
  tags: ['a'],
  enqueuedAt: time,
  attempts: [attempt],
  links: { self: '/v1/tasks/x', cancel: '/v1/tasks/x/cancel' },
}

test('the outcome of an attempt is the label of its final state', () => {
  expect(ATTEMPT_OUTCOMES).toEqual(['succeeded', 'failed', 'panicked', 'cancelled', 'interrupted', 'timed out'])
  expect(ATTEMPT_OUTCOMES).not.toContain(ATTEMPT_STATE_LABELS.IN_PROCESS)
})

describe('a task', () => {
  test('is accepted in every status, alone and on a page', () => {
    expect(taskViewSchema.parse(task)).toEqual(task)
    expect(taskPageSchema.parse({ tasks: [task], next: 'c' })).toEqual({ tasks: [task], next: 'c' })
    for (const status of TASK_STATUSES) expect(taskViewSchema.safeParse({ ...task, status }).success).toBe(true)
  })

  test.each([
    { status: 'failed' },
    { enqueuedAt: 1 },
    { attempts: [{ ...attempt, state: 'IN_PROCESS' }] },
    { attempts: [{ ...attempt, outcome: 'DONE_ERROR' }] },
    { attempts: [{ ...attempt, counted: undefined }] },
    { attempts: [{ ...attempt, startedAt: 1 }] },
  ])('with %j is refused', (wrong) => {
    expect(taskViewSchema.safeParse({ ...task, ...wrong }).success).toBe(false)
  })
})
