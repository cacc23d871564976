// Tests how a record reads as the API's JSON.
import type { TaskRecord } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { describe, expect, test } from 'vitest'
import { anId, NOW } from '../api.fixture.ts'
import { attemptEnd, fakeBroker } from '../fake-broker.fixture.ts'
import { viewOf } from './task-view.ts'

function view(more: Partial<TaskRecord>) {
  const shown = viewOf(fakeBroker().put({ id: anId, enqueuedAt: NOW, ...more }))
  expect(taskViewSchema.parse(shown)).toEqual(shown)
  return shown
}

const failed = attemptEnd({ state: 'DONE_ERROR', code: 'card_declined', message: 'the bank said no' })

describe('a task', () => {
  test('that nobody has started has no state, no error and no times but its own', () => {
    expect(view({})).toEqual({
      id: anId,
      task: 'math.square',
      version: 1,
      queue: 'cpu',
      status: 'waiting',
      fencingToken: 0,
      attemptsMade: 0,
      maxAttempts: 5,
      input: { n: 4 },
      meta: {},
      tags: [],
      enqueuedAt: '2026-01-02T03:04:05.000Z',
      attempts: [],
      links: expect.anything(),
    })
  })

  test('that runs is IN_PROCESS, and still shows what failed before', () => {
    const shown = view({ status: 'active', attempts: [failed], startedAt: NOW + 5 })
    expect(shown).toMatchObject({ state: 'IN_PROCESS', startedAt: '2026-01-02T03:04:05.005Z' })
    expect(shown.error).toEqual({ code: 'card_declined', message: 'the bank said no' })
    expect(shown).not.toHaveProperty('reason')
  })

  test('that failed as nobody expected shows the reason', () => {
    const end = attemptEnd({ state: 'RECOVER_ERR', reason: 'unexpected_error', message: 'TypeError: x' })
    expect(view({ status: 'dead', attempts: [failed, end] })).toMatchObject({
      state: 'RECOVER_ERR',
      reason: 'unexpected_error',
      error: { code: 'unexpected_error', message: 'TypeError: x' },
    })
  })

  test('that is completed shows its output, even null, and no error', () => {
    const shown = view({ status: 'completed', output: null, attempts: [failed, attemptEnd({ fencingToken: 2 })] })
    expect(shown).toMatchObject({ state: 'DONE_SUCCESS', output: null })
    expect(shown).not.toHaveProperty('error')
  })

  test('that has finished steps names them', () => {
    expect(view({ steps: ['pay', 'mail'] })).toMatchObject({ steps: ['pay', 'mail'] })
  })

  test('that waits for its next attempt says when', () => {
    expect(view({ status: 'retrying', dueAt: NOW + 1_500, attempts: [failed] })).toMatchObject({
      state: 'DONE_ERROR',
      dueAt: '2026-01-02T03:04:06.500Z',
      attempts: [{ startedAt: '1970-01-01T00:00:01.000Z', endedAt: '1970-01-01T00:00:02.000Z' }],
    })
  })
})
