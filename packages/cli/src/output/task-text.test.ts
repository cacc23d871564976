// Tests how tasks are written for people.
import { expect, test } from 'vitest'
import { ID, LINKS, view } from '../fake-api.fixture.ts'
import { acceptedLine, cancelledLine, listLine, taskLines } from './task-text.ts'

const look = { now: Date.UTC(2026, 0, 1, 0, 1), paint: (style: string, text: string) => `<${style} ${text}>` }
const ENDS = [
  {
    fencingToken: 1,
    attempt: 1,
    counted: true,
    state: 'DONE_ERROR',
    code: 'smtp_421',
    message: 'try\nlater',
    worker: 'a:1:x',
  },
  { fencingToken: 12, attempt: 2, counted: true, state: 'TERMINATED_TIMEOUT', reason: 'run_timeout', worker: 'b:2:y' },
] as const
const TIMES = { startedAt: '2026-01-01T00:00:01.000Z', endedAt: '2026-01-01T00:00:02.500Z' }
const history = ENDS.map((end) => ({ ...end, ...TIMES }))

test('a task is aligned lines, with an attempt on each line of its history', () => {
  const task = view({
    ...{
      status: 'retrying',
      state: 'TERMINATED_TIMEOUT',
      reason: 'run_timeout',
      fencingToken: 12,
      attemptsMade: 2,
      output: undefined,
    },
    ...{
      dueAt: '2026-01-01T00:01:30.000Z',
      startedAt: '2026-01-01T00:00:01.000Z',
      correlationId: 'order-7',
      attempts: history,
    },
    ...{ meta: { order: 'A-1', by: 'ann' }, progress: { fraction: 0.456, note: 'half' } },
    ...{ error: { code: 'smtp_421', message: 'try\nlater' } },
  })
  expect(taskLines(task, look)).toEqual([
    `${ID}  <yellow retrying>`,
    'task         math.factorial, version 1',
    'queue        cpu',
    'state        TERMINATED_TIMEOUT, run_timeout',
    'attempts     2 of 5, starts 12',
    'enqueued     2026-01-01T00:00:00.000Z (1m ago)',
    'due          2026-01-01T00:01:30.000Z (in 30s)',
    'started      2026-01-01T00:00:01.000Z (59s ago)',
    'progress     45 % half',
    'meta         order=A-1, by=ann',
    'correlation  order-7',
    'input        {"n":5}',
    'error        smtp_421: try later',
    'history',
    '  1   DONE_ERROR          smtp_421     try later  1.5s  a:1:x',
    '  12  TERMINATED_TIMEOUT  run_timeout             1.5s  b:2:y',
  ])
})

test('what a task does not have is left out, down to empty columns', () => {
  const [, end] = history
  const lines = taskLines(view({ attempts: end === undefined ? [] : [end] }), look)
  expect(lines.at(-1)).toBe('  12  TERMINATED_TIMEOUT  run_timeout  1.5s  b:2:y')
  expect(taskLines(view(), look).join('\n')).not.toMatch(/history|error|meta|due|progress|state/)
})

test('long values are cut', () => {
  const lines = taskLines(view({ input: 'x'.repeat(10_000) }), look)
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(1_100)
})

test.each([
  [view({ endedAt: '2026-01-01T00:00:30.000Z' }), '  1/5  ended 30s ago        math.factorial'],
  [view({ status: 'active', startedAt: '2026-01-01T00:00:59.000Z' }), '  1/5  started 1s ago       math.factorial'],
  [view({ status: 'scheduled', dueAt: '2026-01-01T01:01:00.000Z' }), '  1/5  due in 1h            math.factorial'],
  [view({ status: 'waiting' }), '  1/5  enqueued 1m ago      math.factorial'],
  [view({ error: { code: 'no_such', message: '' } }), '  1/5  enqueued 1m ago      math.factorial  no_such'],
])('a line of a list tells the time that matters', (task, line) => {
  expect(listLine(task, look)).toBe(`${ID}  ${line}`)
})

test('answers are one line', () => {
  expect(acceptedLine({ id: ID, status: 'scheduled', links: LINKS }, look)).toBe(`${ID}  <blue scheduled>`)
  const cancelled = { id: ID, outcome: 'cancelled', status: 'cancelled', links: LINKS } as const
  expect(cancelledLine(cancelled, look)).toBe(`${ID}  cancelled`)
  expect(cancelledLine({ ...cancelled, outcome: 'already_ended', status: 'dead' }, look)).toBe(
    `${ID}  already_ended, it is <red dead>`,
  )
})
