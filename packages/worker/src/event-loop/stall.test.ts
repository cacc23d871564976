import { describe, expect, it } from 'vitest'
import { BEAT_MS, type Finding, type Look, observe, STILLNESS_BEGINS } from './stall.ts'

const WARN_AFTER_MS = 1_000

/** What was found at each look that found something, with how long the loop had stood still by then. */
function findings(looks: readonly Look[]): [Finding, stillMs: number][] {
  let stillness = STILLNESS_BEGINS
  return looks.flatMap((look): [Finding, number][] => {
    const step = observe(stillness, look, WARN_AFTER_MS)
    stillness = step.stillness
    return step.finding === 'nothing' ? [] : [[step.finding, stillness.stillMs]]
  })
}

const still = (looks: number, beat = 1, elapsedMs = BEAT_MS): Look[] => Array(looks).fill({ beat, elapsedMs })

describe('the watch of an event loop', () => {
  it('says nothing of one that turns, however busy', () => {
    const looks = Array.from({ length: 100 }, (_, look) => still(9, look + 1)).flat()
    expect(findings(looks)).toEqual([])
  })

  it('tells a block when it is as long as was set, and again each time that it has doubled', () => {
    expect(findings(still(100))).toEqual([
      ['tell', 1_000],
      ['tell', 2_000],
      ['tell', 4_000],
      ['tell', 8_000],
    ])
  })

  it('tells its end once, and the next block from the beginning', () => {
    expect(findings([...still(25), ...still(5, 2), ...still(12, 3), ...still(1, 4)])).toEqual([
      ['tell', 1_000],
      ['tell', 2_000],
      ['over', 0],
      ['tell', 1_000],
      ['over', 0],
    ])
  })

  it('does not blame the loop for the time that the whole process was held', () => {
    expect(findings([...still(3), ...still(1, 1, 60_000), ...still(1, 2)])).toEqual([])
  })

  it('counts looks that come somewhat late in full', () => {
    expect(findings(still(9, 1, 1.5 * BEAT_MS))).toEqual([['tell', 1_050]])
  })

  it('goes on when the beats’ 32 bits run over', () => {
    expect(findings([...still(5, 2 ** 31 - 1), ...still(5, -(2 ** 31))])).toEqual([])
  })
})
