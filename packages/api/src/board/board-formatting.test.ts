// Tests how stored jobs read on the board.
import { expect, test } from 'vitest'
import { attemptEnd } from '../fake-broker.fixture.ts'
import { dataWords, jobWords, returnValueWords } from './board-formatting.ts'

const failed = attemptEnd({ state: 'DONE_ERROR', code: 'card_declined', message: 'no' })

test('data shows the input first, and what came with it', () => {
  const stored = { v: 1, version: 2, input: { n: 4 }, meta: { tenant: 'acme' } }
  expect(dataWords(stored)).toEqual({
    input: { n: 4 },
    meta: { tenant: 'acme' },
    version: 2,
  })
})

test('the return value shows the output with the state', () => {
  expect(returnValueWords({ output: { value: 16 }, worker: 'host-1' })).toEqual({
    output: { value: 16 },
    state: 'DONE_SUCCESS',
    worker: 'host-1',
  })
})

test('a task shows its newest state beside its name, and its failures as sentences', () => {
  const stack = `${JSON.stringify(failed)}\nTaskError: no\n    at handler`
  const job = { name: 'receipt.send', returnvalue: null, stacktrace: [stack] }
  expect(jobWords(job)).toEqual({
    name: 'receipt.send · DONE_ERROR (card_declined)',
    returnvalue: null,
    stacktrace: [
      'DONE_ERROR (card_declined) in attempt 1 (start 1), after 1000 ms on host-1\nTaskError: no\n    at handler',
    ],
  })
  expect(jobWords({ ...job, returnvalue: { output: 1, worker: 'host-1' } }).name).toBe('receipt.send · DONE_SUCCESS')
})

test('what is not ours is shown as it is', () => {
  for (const stored of [undefined, null, 'text', { other: 1 }]) {
    expect(dataWords(stored)).toBe(stored)
    expect(returnValueWords(stored)).toBe(stored)
  }
  const job = { name: 'x', stacktrace: ['Error: stalled\n at y', 'null', 7] }
  expect(jobWords(job)).toEqual(job)
  expect(jobWords({ name: 'x', stacktrace: null })).toEqual({ name: 'x', stacktrace: [] })
})
