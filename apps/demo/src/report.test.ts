// Tests the demo's output and its progress bar.
import { Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { formatBytes } from './format.ts'
import { type Screen, showProgress } from './progress.ts'
import { finalReport, progressBar } from './report.ts'

const half = { files: 500, bytes: 1_234_567, total: 1_000, seconds: 2 }
const LINE = '500 of 1000 files, 50%, 1.2 MB, 250 files/s'

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

describe('the bar', () => {
  test('fills what the text leaves, up to 40 characters', () => {
    expect(progressBar(half, 200, false)).toBe(`[${'#'.repeat(20)}${'.'.repeat(20)}] ${LINE}`)
    expect(progressBar({ ...half, files: 1_000 }, 200, false)).toContain(`[${'#'.repeat(40)}]`)
  })

  test.each([0, 1, 10, 40, 60, 79, 80])('never fills the last of %i columns', (columns) => {
    expect(progressBar(half, columns, false).length).toBeLessThanOrEqual(Math.max(columns - 1, 0))
  })

  test('is coloured on request', () => {
    expect(progressBar(half, 80, true)).toContain('\x1b[32m#')
    expect(progressBar(half, 80, false)).not.toContain('\x1b')
  })
})

describe('progress', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function shown(screen: { isTTY?: boolean; columns?: number }, env: NodeJS.ProcessEnv): string {
    let text = ''
    const write = (chunk: Buffer, _: unknown, done: () => void) => {
      text += chunk
      done()
    }
    const stream: Screen = Object.assign(new Writable({ write }), screen)
    const progress = showProgress(stream, env, () => half)
    vi.advanceTimersByTime(7_000)
    progress.print('a line')
    progress.end()
    vi.advanceTimersByTime(60_000)
    return text
  }

  test('is a bar on a terminal, erased at the end', () => {
    const text = shown({ isTTY: true, columns: 100 }, {})
    expect(text).toContain('\x1b[32m#')
    expect(text).toContain('\r\x1b[Ka line\n')
    expect(text.endsWith('\r\x1b[K')).toBe(true)
    expect(text.split('\r').length).toBeGreaterThan(60)
  })

  test('has no colour with NO_COLOR', () => {
    expect(shown({ isTTY: true, columns: 100 }, { NO_COLOR: '1' })).not.toContain('\x1b[3')
  })

  test.each([
    [{}, {}],
    [{ isTTY: true }, { TERM: 'dumb' }],
  ])('is a plain line every three seconds elsewhere: %j %j', (screen, env) => {
    expect(shown(screen, env)).toBe(`${LINE}\n${LINE}\na line\n`)
  })
})

describe('the report', () => {
  const outcome = { ...half, workers: new Set(['a', 'b']), startedAgain: 0, extraStarts: 0 }

  test('has the number of files, bytes, workers and seconds', () => {
    expect(finalReport(outcome, undefined)).toEqual(['500 files, 1.2 MB, 2 workers, 2.0 s (250 files/s)'])
  })

  test('reports how many tasks a kill interrupted', () => {
    const killed = finalReport({ ...outcome, startedAgain: 3, extraStarts: 4 }, { pid: 77 })
    expect(killed.slice(1)).toEqual(['after worker 77 was killed, 3 tasks were started again (4 extra starts)'])
  })

  test('reports that tasks were started again even without --kill', () => {
    expect(finalReport({ ...outcome, startedAgain: 1, extraStarts: 1 }, undefined)[1]).toBe(
      '1 task was started again (1 extra start)',
    )
  })

  test('reports that nothing was interrupted if the kill came too late', () => {
    expect(finalReport(outcome, { pid: 77 })[1]).toMatch(/^the directory is too small, so no task was interrupted/)
    expect(finalReport(outcome, { pid: undefined })[1]).toMatch(/^no worker was killed/)
  })
})
