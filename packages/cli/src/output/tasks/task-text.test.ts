// Tests how tasks are formatted as text.
import { expect, test } from 'vitest'
import { ID, LINKS, view } from '../../fake-api.fixture.ts'
import { acceptedLine, cancelledLine, listLine, taskLines } from './task-text.ts'

const layout = { now: Date.UTC(2026, 0, 1, 0, 1), paint: (style: string, text: string) => `<${style} ${text}>` }
const ATTEMPTS = [
  {
    fencingToken: 1,
    attempt: 1,
    counted: true,
    outcome: 'failed',
    state: 'DONE_ERROR',
    error: { code: 'smtp_421', message: 'try\nlater' },
    worker: 'a:1:x',
  },
  {
    fencingToken: 12,
    attempt: 2,
    counted: true,
    outcome: 'timed out',
    state: 'TERMINATED_TIMEOUT',
    error: { code: 'run_timeout', message: '' },
    worker: 'b:2:y',
  },
] as const
const TIMES = { startedAt: '2026-01-01T00:00:01.000Z', endedAt: '2026-01-01T00:00:02.500Z' }
const attempts = ATTEMPTS.map((attempt) => ({ ...attempt, ...TIMES }))

test('a task has a line for each of its fields and for each attempt', () => {
  const task = view({
    ...{
      status: 'retrying',
      fencingToken: 12,
      attemptsMade: 2,
      output: undefined,
    },
    ...{
      dueAt: '2026-01-01T00:01:30.000Z',
      startedAt: '2026-01-01T00:00:01.000Z',
      correlationId: 'order-7',
      attempts,
    },
    ...{ meta: { order: 'A-1', by: 'ann' }, progress: { fraction: 0.456, note: 'half' } },
    ...{ error: { code: 'smtp_421', message: 'try\nlater' } },
  })
  expect(taskLines(task, layout)).toEqual([
    `${ID}  <yellow retrying>`,
    'task         math.factorial, version 1',
    'queue        cpu',
    'enqueued     2026-01-01T00:00:00.000Z (1m ago)',
    'due          2026-01-01T00:01:30.000Z (in 30s)',
    'started      2026-01-01T00:00:01.000Z (59s ago)',
    'progress     45% half',
    'meta         order=A-1, by=ann',
    'correlation  order-7',
    'input        {"n":5}',
    'error        smtp_421: try later',
    'attempts     2 of 5 used, 12 started',
    '  1   failed     smtp_421     try later  1.5s  a:1:x',
    '  12  timed out  run_timeout             1.5s  b:2:y',
  ])
})

test('absent fields and empty columns are left out', () => {
  const [, attempt] = attempts
  const lines = taskLines(view({ attempts: attempt === undefined ? [] : [attempt] }), layout)
  expect(lines.at(-1)).toBe('  12  timed out  run_timeout  1.5s  b:2:y')
  expect(taskLines(view(), layout).join('\n')).not.toMatch(/error|meta|due|progress|attempt /)
})

test('long values are cut', () => {
  const lines = taskLines(view({ input: 'x'.repeat(10_000) }), layout)
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(1_100)
})

test.each([
  [view({ endedAt: '2026-01-01T00:00:30.000Z' }), '  1/5  ended 30s ago        math.factorial'],
  [view({ status: 'active', startedAt: '2026-01-01T00:00:59.000Z' }), '  1/5  started 1s ago       math.factorial'],
  [view({ status: 'scheduled', dueAt: '2026-01-01T01:01:00.000Z' }), '  1/5  due in 1h            math.factorial'],
  [view({ status: 'waiting' }), '  1/5  enqueued 1m ago      math.factorial'],
  [view({ error: { code: 'no_such', message: '' } }), '  1/5  enqueued 1m ago      math.factorial  no_such'],
])('a line of a list shows the time that matters for its status: %#', (task, line) => {
  expect(listLine(task, layout)).toBe(`${ID}  ${line}`)
})

test('the attempt of a cancelled task names the cancel once', () => {
  const error = { code: 'cancelled', message: 'the task was cancelled' }
  const [first] = attempts
  const cancelled = first && [
    { ...first, fencingToken: 0, outcome: 'cancelled', state: 'TERMINATED_STOP_SIGNAL', error } as const,
  ]
  const lines = taskLines(view({ status: 'cancelled', attempts: cancelled ?? [] }), layout)
  expect(lines.at(-1)).toBe('  not started  cancelled  the task was cancelled  1.5s  a:1:x')
})

test('an attempt whose handler was not started has no number', () => {
  const [first] = attempts
  const error = { code: 'poison', message: '3 worker processes died while the task was running' }
  const poisoned =
    first === undefined
      ? []
      : [first, { ...first, fencingToken: 0, outcome: 'panicked', state: 'RECOVER_ERR', error } as const]
  const lines = taskLines(view({ status: 'dead', attempts: poisoned }), layout)
  expect(lines.slice(-2)).toEqual([
    '  1            failed    smtp_421  try later                                           1.5s  a:1:x',
    '  not started  panicked  poison    3 worker processes died while the task was running  1.5s  a:1:x',
  ])
})

test('an accepted or cancelled task is one line', () => {
  const accepted = { id: ID, action: 'created', status: 'scheduled', links: LINKS } as const
  expect(acceptedLine(accepted, layout)).toBe(`${ID}  <blue scheduled>`)
  expect(acceptedLine({ ...accepted, action: 'existing' }, layout)).toBe(`${ID}  <blue scheduled>, already stored`)
  const { status: _, ...deleted } = accepted
  expect(acceptedLine({ ...deleted, action: 'existing' }, layout)).toBe(`${ID}  deleted, already stored`)
  expect(acceptedLine({ ...accepted, action: 'replaced' }, layout)).toBe(
    `${ID}  <blue scheduled>, replaced the task that had the unique key`,
  )
  expect(acceptedLine({ ...accepted, action: 'extended' }, layout)).toBe(
    `${ID}  <blue scheduled>, already stored, start postponed`,
  )
  const expectedIn = (ms: number) => ({ ...accepted, expectedStartAt: new Date(layout.now + ms).toISOString() })
  expect(acceptedLine(expectedIn(1_900), layout)).toBe(`${ID}  <blue scheduled>`)
  expect(acceptedLine(expectedIn(90_000), layout)).toBe(`${ID}  <blue scheduled>, expected to start in 1m`)
  const cancelled = { id: ID, outcome: 'cancelled', status: 'cancelled', links: LINKS } as const
  expect(cancelledLine(cancelled, layout)).toBe(`${ID}  cancelled`)
  expect(cancelledLine({ ...cancelled, outcome: 'already_ended', status: 'dead' }, layout)).toBe(
    `${ID}  already ended, status <red dead>`,
  )
})

test('a task that does not run shows what it waits for, in the words of the API', () => {
  const waitsFor = { kind: 'turn', ahead: 1, text: 'its turn, after 1 task of \u001b[31mits key' } as const
  const lines = taskLines(view({ concurrencyKey: 'acme', waitsFor }), layout)
  expect(lines).toContain('concurrency  acme')
  expect(lines.find((line) => line.startsWith('waits for'))).toMatch(
    /^waits for {4}its turn, after 1 task of .*its key$/,
  )
})
