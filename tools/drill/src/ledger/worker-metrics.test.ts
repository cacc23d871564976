// Tests that a worker's counters equal the ledger only if every attempt is counted once, and as its task's record requires.
import { describe, expect, it } from 'vitest'
import type { Effect } from './effects.ts'
import { type AttemptCounts, miscounted, readCounts } from './worker-metrics.ts'

const started = (id: string, fencingToken: number, worker: string): Effect => ({
  what: 'start',
  id,
  fencingToken,
  worker,
  at: 1,
})

/** Task `a` was lost by w1 and completed by w2. Task `b` was retried by w2, and completed by w1. */
const EFFECTS = [started('a', 1, 'w1'), started('a', 2, 'w2'), started('b', 1, 'w2'), started('b', 2, 'w1')]
const ENDS = new Map([
  ['a', { attempts: [{ fencingToken: 1, reason: 'process_lost' }, { fencingToken: 2 }] }],
  ['b', { attempts: [{ fencingToken: 1 }, { fencingToken: 2 }] }],
])
const W1: AttemptCounts = { started: 2, ended: 1, refused: 1 }
const W2: AttemptCounts = { started: 2, ended: 2, refused: 0 }

describe('the counters of workers', () => {
  it('equal the ledger if each attempt is counted as its record says', () => {
    expect(
      miscounted(
        new Map([
          ['w1', W1],
          ['w2', W2],
        ]),
        EFFECTS,
        ENDS,
      ),
    ).toBe(0)
  })

  it.each([
    ['an end is counted twice', { ...W2, ended: 3 }, 1],
    ['an end is not counted', { ...W2, ended: 1 }, 1],
    ['a refused commit is counted as an end', { ...W2, ended: 1, refused: 1 }, 2],
    ['a start is not counted', { ...W2, started: 1 }, 1],
  ])('differ from the ledger if %s', (_, counts, off) => {
    expect(miscounted(new Map([['w2', counts]]), EFFECTS, ENDS)).toBe(off)
  })

  it('are not compared for a worker that was killed', () => {
    expect(miscounted(new Map([['w2', W2]]), EFFECTS, ENDS)).toBe(0)
  })

  it('are summed over all series of the metrics', () => {
    const text = `# TYPE bullpen_attempts_ended_total counter
bullpen_attempts_started_total{queue="q",task="t"} 5
bullpen_attempts_ended_total{queue="q",task="t",state="DONE_SUCCESS",verdict="completed"} 3
bullpen_attempts_ended_total{queue="q",task="t",state="DONE_ERROR",verdict="retrying"} 1
bullpen_commits_refused_total{queue="q",task="t",reason="lock_lost"} 1
`
    expect(readCounts(text)).toEqual({ started: 5, ended: 4, refused: 1 })
  })
})
