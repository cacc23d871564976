// Tests the frames of bullpen top as text.
import { describe, expect, test } from 'vitest'
import type { Snapshot } from '../../commands/top/snapshot.ts'
import { busy, NOW, P1, P2, pool, QUEUES, workerOf } from '../../fleet.fixture.ts'
import { frameLines } from './frame.ts'

const [cpu] = QUEUES.queues
if (cpu === undefined) throw new Error('the fixture has no queue')
const quiet = { ...cpu, tasks: { ...cpu.tasks, waiting: 0, active: 0, dead: 0 }, deadByFingerprint: [], paused: false }
const { maxTasks: _, oldestWaiting: _oldest, ...unlimited } = quiet

const snapshot = (more: Partial<Snapshot> = {}): Snapshot => ({
  ...{ now: NOW, queues: [unlimited, cpu], workers: [workerOf(P1)], running: [busy(1, 12), busy(2, 300)] },
  ...more,
})
const paint = (_: string, text: string) => text
const size = (columns: number, rows: number) => ({ columns, rows, paint })
const ALL = size(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
const linesOf = (more: Partial<Snapshot>, of = ALL) => frameLines({ snapshot: snapshot(more) }, of)
/** Returns the lines of the table whose heading begins with this word. */
const tableOf = (lines: readonly string[], word: string): readonly string[] => {
  const start = lines.findIndex((line) => line.trimStart().startsWith(word))
  const end = lines.indexOf('', start)
  return lines.slice(start + 1, end === -1 ? undefined : end)
}

test('a frame shows the totals, the busiest queues, the workers, the longest-running tasks and the errors', () => {
  expect(linesOf({ queues: [{ ...unlimited, queue: 'mail' }, cpu] })).toEqual([
    'bullpen top  2026-01-01 00:10:00 UTC  2 queues, 1 worker',
    'slots 1/4 busy (25%), waiting 12, active 3, dead 9, in 9/s, out 6/s',
    '',
    'queue  waiting  active  scheduled  retrying  dead   depth  oldest  in/s  out/s  busy  state',
    'cpu         12       3          0         1     9  13/500     30s   4.5      3   1/4  paused, at most 500 tasks',
    'mail         0       0          0         1     0       1       -   4.5      3   1/4  open',
    '',
    'worker                   busy  used   up  version  state    pools',
    'worker-7d9f:12:a3f84945   1/4   25%  10m  0.2.0    running  cpu 1/4',
    '',
    'running  task            id                              timeout  state    worker',
    '     5m  math.factorial  cpu-01jd3v7n8q0000000000000000  none     running  worker-7d9f:12:a3f84945',
    '    12s  math.factorial  cpu-01jd3v7n8q0000000000000000  none     running  worker-7d9f:12:a3f84945',
    '',
    'dead  newest  queue  fingerprint       error',
    '   7      1m  cpu    0123456789abcdef  http_503: the provider responded with status # to request # of the customer # of this tenant',
  ])
})

test('an empty fleet is described in words', () => {
  expect(linesOf({ queues: [unlimited], workers: [], running: [] }).slice(4)).toEqual([
    expect.stringContaining('cpu'),
    ...['', 'no workers are running', '', 'no tasks are running', '', 'no dead tasks'],
  ])
})

test('a queue that is full, or whose tasks wait although it has no workers, says so', () => {
  const full = { ...unlimited, queue: 'full', maxTasks: 1 }
  const large = { ...unlimited, queue: 'large', maxBytes: 4_096 }
  const alone = { ...unlimited, queue: 'alone', pools: 0, tasks: { ...unlimited.tasks, waiting: 5 } }
  const idle = { ...unlimited, queue: 'idle', pools: 0 }
  const since = '2026-01-01T00:09:30.000Z'
  const drained = { ...alone, queue: 'drained', drain: { mode: 'soft' as const, since, command: 'c' } }
  const rows = tableOf(linesOf({ queues: [full, large, alone, idle, drained] }), 'queue')
  expect(rows.map((row) => [row.split(' ')[0], row.split(/ {2,}/).at(-1)])).toEqual([
    ['alone', 'no workers'],
    ['drained', 'draining (soft), started 30s ago'],
    ['full', 'full, at most 1 task'],
    ['idle', 'open'],
    ['large', 'full, at most 4096 bytes of tasks'],
  ])
})

test('a queue shows how many of its tasks are blocked', () => {
  const blocked = { ...unlimited, paused: false, blockedTasks: 5 }
  expect(linesOf({ queues: [blocked], workers: [], running: [] })[4]).toMatch(/5 blocked$/)
})

test('a queue with a limit of starts is limited if tasks wait beside free slots', () => {
  const waiting = { ...unlimited, tasks: { ...unlimited.tasks, waiting: 5 } }
  const rate = { max: 1, perMs: 3_600_000 }
  const queues = [
    { ...waiting, queue: 'a', rate },
    { ...waiting, queue: 'b', concurrency: 1 },
    { ...waiting, queue: 'busy', rate, busy: 4 },
    { ...waiting, queue: 'held', rate, paused: true },
    { ...unlimited, queue: 'idle', rate },
  ]
  const rows = tableOf(linesOf({ queues }), 'queue')
  expect(rows.map((row) => [row.split(' ')[0], row.split(/ {2,}/).at(-1)])).toEqual([
    ['a', 'limited, at most 1 start per 1h'],
    ['b', 'limited, at most 1 at once'],
    ['busy', 'open, at most 1 start per 1h'],
    ['held', 'paused, at most 1 start per 1h'],
    ['idle', 'open, at most 1 start per 1h'],
  ])
})

test('workers that need attention come first, and their state says why', () => {
  const seenAt = '2026-01-01T00:09:48.000Z'
  const many = [pool({ stuckHandlers: 2 }), pool({ queue: 'files', state: 'RECOVER_ERR', label: 'panicked' })]
  const workers = [
    workerOf('a', { pools: [pool({ busy: 4 })], stalls: { count: 1, stalledMs: 1_200 } }),
    workerOf('b', { draining: true, pools: [pool({ state: 'SHUTTING_DOWN', label: 'draining' })] }),
    workerOf('c', { pools: many }),
    workerOf('d', {
      pools: [pool({ notReady: 'Redis is unreachable' }), pool({ queue: 'x', notReady: 'Redis is unreachable' })],
    }),
    workerOf('e', { skewMs: 1_500, stalls: { count: 7, stalledMs: 14_000, lastTask: 'math.factorial' } }),
    workerOf('f', { alive: false, seenAt }),
    workerOf('g', { pools: [pool({ paused: true })] }),
  ]
  const rows = tableOf(linesOf({ workers }), 'worker')
  expect(rows.map((row) => row.split(/ {2,}/)).map(([name, , , , , state]) => [name, state])).toEqual([
    ['f', 'LOST: no heartbeat for 12s'],
    ['c', 'cpu: 2 stuck handlers, files: panicked'],
    ['d', 'not accepting tasks: Redis is unreachable'],
    ['b', 'draining'],
    ['e', 'event loop blocked for 14s of the last minute, last by math.factorial, clock 1.5s ahead of Redis'],
    ['a', 'running'],
    ['g', 'paused'],
  ])
  expect(linesOf({ workers })[0]).toContain('2 queues, 6 workers and 1 LOST')
})

test('a running task shows when its timeout expires, and whether its slot is stopping', () => {
  const late = { ...busy(1, 70, { timeoutAt: '2026-01-01T00:09:55.000Z' }), label: 'stopping now' } as const
  const running = [{ ...late, state: 'TERMINATING_PARENT_CTX_CLOSED' as const }, busy(2, 5, { timeoutAt: NOW })]
  const rows = tableOf(linesOf({ running }), 'running').map((row) => row.trim().split(/ {2,}/))
  expect(rows.map(([age, , , timeout, state]) => [age, timeout, state])).toEqual([
    ['1m', '5s ago', 'stopping now'],
    ['5s', '0ms ago', 'running'],
  ])
})

test('control characters in names do not reach the terminal', () => {
  const running = [busy(1, 5, { task: 'a\u001b[2Jb' })]
  const all = linesOf({ workers: [workerOf('evil\u001b[31m\n')], running }).join('')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not occur.
  expect(all).not.toMatch(/[\u0000-\u001f]/)
})

describe('on a screen that is too small', () => {
  const queues = Array.from({ length: 20 }, (_, i) => ({ ...cpu, queue: `queue-${i}`, rates: { ...cpu.rates, in: i } }))
  const workers = Array.from({ length: 30 }, (_, i) => workerOf(`${P2}-${i}`))
  const running = Array.from({ length: 3 }, (_, i) => busy(i, i))

  test('the busiest queues and workers are shown, and the others are counted', () => {
    const lines = linesOf({ queues, workers, running }, size(80, 30))
    expect(lines).toHaveLength(30)
    const shownQueues = tableOf(lines, 'queue')
    expect(shownQueues[0]).toMatch(/^queue-19 /)
    expect(shownQueues.at(-1)).toBe(`and ${20 - (shownQueues.length - 1)} more`)
    const shownWorkers = tableOf(lines, 'worker')
    expect(shownWorkers.at(-1)).toBe(`and ${30 - (shownWorkers.length - 1)} more`)
    // The tasks need less than their share, and the others get what is left.
    expect(tableOf(lines, 'running')).toHaveLength(3)
    expect(shownQueues.length).toBeGreaterThan(3)
  })

  test.each([
    [80, 24],
    [40, 12],
    [20, 7],
    [10, 3],
    [1, 1],
  ])('%i columns and %i rows are not exceeded', (columns, rows) => {
    for (const lines of [
      linesOf({ queues, workers, running }, size(columns, rows)),
      frameLines({ snapshot: snapshot(), ageMs: 5_000, failure: 'unreachable: x' }, size(columns, rows)),
      frameLines({ failure: 'unreachable: it does not answer' }, size(columns, rows)),
      frameLines({}, size(columns, rows)),
      linesOf({ queues: [], workers: [], running: [] }, size(columns, rows)),
    ]) {
      expect(lines.length).toBeLessThanOrEqual(rows)
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
    }
  })
})

test('old data is marked with its age and the reason', () => {
  const failure = 'unreachable: no response'
  expect(frameLines({ snapshot: snapshot(), ageMs: 14_000, failure }, ALL)[2]).toBe(
    'OLD DATA, from 14s ago; trying again: unreachable: no response',
  )
  expect(frameLines({ failure }, ALL)).toEqual(['bullpen top', 'NO DATA YET; trying again: unreachable: no response'])
  expect(frameLines({}, ALL)).toEqual(['bullpen top', 'reading the fleet…'])
})
