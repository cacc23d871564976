// Tests that the figures show every way in which an idempotency key can fail.
import type { TaskRecord } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { idempotentFigures, type KeyResult } from './idempotent-figures.ts'

const task = { id: 'cpu-1', status: 'completed', attemptsMade: 1 } as TaskRecord
const response = (body: string, isReplayed = true) => ({ body, isReplayed })
const result = (changes: Partial<KeyResult> = {}): KeyResult => ({
  responses: [response('a', false), response('a')],
  unanswered: 0,
  unknown: 3,
  faultsWithoutEffect: 0,
  task,
  ...changes,
})
const once = new Map([[task.id, 1]])

test('one task and equal responses miss nothing', () => {
  expect(idempotentFigures([result()], 1, once)).toMatchObject({
    accepted: 1,
    lost: 0,
    duplicated: 0,
    failed: 0,
    responses: 2,
    differentResponses: 0,
    firstResponsesRepeated: 0,
    unanswered: 0,
    unknownOutcomes: 3,
  })
})

test.each([
  ['a second stored task', result(), 2, once, { duplicated: 1 }],
  ['a task that completed twice', result(), 1, new Map([[task.id, 2]]), { duplicated: 1 }],
  ['another response', result({ responses: [response('a'), response('b')] }), 1, once, { differentResponses: 1 }],
  [
    'a second response that is not marked',
    result({ responses: [response('a', false), response('a', false)] }),
    1,
    once,
    { firstResponsesRepeated: 1 },
  ],
  ['a task that has not ended', result({ task: { ...task, status: 'active' } as TaskRecord }), 1, once, { lost: 1 }],
  ['a task that is gone', result({ task: undefined }), 1, once, { lost: 1 }],
])('%s is counted', (_, given, tasks, completions, figures) => {
  expect(idempotentFigures([given], tasks, completions)).toMatchObject(figures)
})
