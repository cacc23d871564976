// Tests the demo's output: sizes, the progress and the final report.
import { Writable } from 'node:stream'
import type { RunView } from '@bullpen/contract'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { formatBytes } from './format.ts'
import { type Screen, showProgress } from './progress.ts'
import { finalReport, progressLine } from './report.ts'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1_000, '1.0 kB'],
  [999_949, '999.9 kB'],
  [999_950, '1.0 MB'],
  [2.5e12, '2.5 TB'],
  [5e18, '5000.0 PB'],
])('%d bytes are written as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

describe('the progress', () => {
  const view = (state: string, source: string) =>
    ({
      state,
      source: { emitted: 540, state: source },
      stages: [{ waiting: 20, running: 20, completed: 500 }],
    }) as unknown as RunView
  const workers = new Set(['a', 'b'])

  test('shows each stage, the throughput and the workers', () => {
    expect(progressLine({ run: view('running', 'active'), workers }, 2)).toBe(
      '540 files found so far, 20 waiting, 20 running, 500 done, 250 files/s, 2 workers',
    )
  })

  test('shows when the walk has ended, and what the run is doing then', () => {
    const line = (state: string) => progressLine({ run: view(state, 'done'), workers: new Set() }, 2)
    expect(line('reducing')).toBe('540 files found, 20 waiting, 20 running, 500 done, 250 files/s, sorting')
    expect(line('stopping')).toMatch(/, stopping$/)
    expect(progressLine({ run: undefined, workers }, 0)).toBe('starting')
  })
})

describe('the progress is shown', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function shown(screen: { isTTY?: boolean; columns?: number }, env: NodeJS.ProcessEnv): string {
    let text = ''
    const write = (chunk: Buffer, _: unknown, done: () => void) => {
      text += chunk
      done()
    }
    const stream: Screen = Object.assign(new Writable({ write }), screen)
    const progress = showProgress(stream, env, () => 'the progress')
    vi.advanceTimersByTime(7_000)
    progress.print('a line')
    progress.end()
    vi.advanceTimersByTime(60_000)
    return text
  }

  test('as one line on a terminal, erased at the end', () => {
    const text = shown({ isTTY: true, columns: 100 }, {})
    expect(text).toContain('\r\x1b[Ka line\n')
    expect(text.endsWith('\r\x1b[K')).toBe(true)
    expect(text.split('\r').length).toBeGreaterThan(60)
  })

  test.each([0, 1, 5, 12])('without the last of %i columns', (columns) => {
    const [, first = ''] = shown({ isTTY: true, columns }, {}).split('\r\x1b[K')
    expect(first).toBe('the progress'.slice(0, Math.max(columns - 1, 0)))
  })

  test.each([
    [{}, {}],
    [{ isTTY: true }, { TERM: 'dumb' }],
  ])('as further lines every three seconds elsewhere: %j %j', (screen, env) => {
    expect(shown(screen, env)).toBe('the progress\nthe progress\na line\nthe progress\n')
  })
})

describe('the report', () => {
  const file = { path: 'a', md5: 'd41d8cd98f00b204e9800998ecf8427e' }
  const outcome = { files: Array(500).fill(file), bytes: 1_234_567, workers: ['a:1', 'b:2'], startedAgain: 0 }

  test('has the number of files, bytes, workers and seconds', () => {
    expect(finalReport(outcome, 2, undefined)).toEqual(['500 files, 1.2 MB, 2 workers, 2.0 s (250 files/s)'])
  })

  test('reports how many tasks a kill interrupted', () => {
    const killed = finalReport({ ...outcome, startedAgain: 3 }, 2, { killed: { pid: 77, tasks: 4 } })
    expect(killed.slice(1)).toEqual(['after worker 77 was killed, 3 tasks were started again'])
  })

  test('reports that tasks were started again even without --kill', () => {
    expect(finalReport({ ...outcome, startedAgain: 1 }, 2, undefined)[1]).toBe('1 task was started again')
  })

  test('reports that no worker was killed if there was no file', () => {
    const none = { ...outcome, files: [], bytes: 0, workers: [] }
    expect(finalReport(none, 2, { killed: undefined })).toEqual([
      '0 files, 0 bytes, 0 workers, 2.0 s (0 files/s)',
      'no worker was killed, because there was no file to read',
    ])
  })

  test('reports that nothing was interrupted, that nothing was killed, and that a recovery needs two workers', () => {
    const one = { ...outcome, workers: ['a:1'] }
    expect(finalReport(one, 2, { killed: { pid: 77, tasks: 0 } }).slice(1)).toEqual([
      'no task was interrupted; try a directory with more or larger files',
      'a recovery requires at least two workers, but only 1 took part',
    ])
    expect(finalReport(outcome, 2, { killed: undefined })[1]).toMatch(/^no worker was killed/)
  })
})
