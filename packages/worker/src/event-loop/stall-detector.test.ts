// Tests when an event-loop stall is reported, based on the loop's ticks.
import { describe, expect, it } from 'vitest'
import { type Finding, NO_STALL, observe, type Reading, TICK_MS } from './stall-detector.ts'

const WARN_AFTER_MS = 1_000

/** The findings, each with how long the loop had been stalled by then. */
function findings(readings: readonly Reading[]): [Finding, stalledMs: number][] {
  let state = NO_STALL
  return readings.flatMap((reading): [Finding, number][] => {
    const step = observe(state, reading, WARN_AFTER_MS)
    state = step.state
    return step.finding === 'nothing' ? [] : [[step.finding, state.stalledMs]]
  })
}

const stalled = (readings: number, tick = 1, elapsedMs = TICK_MS): Reading[] =>
  Array(readings).fill({ tick, elapsedMs })

describe('a stall of the event loop', () => {
  it('is not reported of a loop that is busy but runs', () => {
    const readings = Array.from({ length: 100 }, (_, reading) => stalled(9, reading + 1)).flat()
    expect(findings(readings)).toEqual([])
  })

  it('is reported when it is as long as was set, and again each time that it has doubled', () => {
    expect(findings(stalled(100))).toEqual([
      ['report', 1_000],
      ['report', 2_000],
      ['report', 4_000],
      ['report', 8_000],
    ])
  })

  it('is reported over once, and the next stall starts from zero', () => {
    expect(findings([...stalled(25), ...stalled(5, 2), ...stalled(12, 3), ...stalled(1, 4)])).toEqual([
      ['report', 1_000],
      ['report', 2_000],
      ['over', 0],
      ['report', 1_000],
      ['over', 0],
    ])
  })

  it('does not include the time in which the whole process was stopped', () => {
    expect(findings([...stalled(3), ...stalled(1, 1, 60_000), ...stalled(1, 2)])).toEqual([])
  })

  it('includes readings that are somewhat late in full', () => {
    expect(findings(stalled(9, 1, 1.5 * TICK_MS))).toEqual([['report', 1_050]])
  })

  it('survives the overflow of the 32-bit tick', () => {
    expect(findings([...stalled(5, 2 ** 31 - 1), ...stalled(5, -(2 ** 31))])).toEqual([])
  })
})
