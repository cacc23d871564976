// Every drill, small: it meets its target, and has had something to measure.
import { expect, it } from 'vitest'
import { perform } from './drill.ts'
import { DRILLS } from './drills.ts'

// Together: what they do is waiting, for locks to run out above all.
it.concurrent.each([...DRILLS.values()])(
  '$name loses nothing, and meets its target',
  async (drill) => {
    const report = await perform(drill, { scale: 'small', seed: 1, peer: false })
    expect(report.missed).toEqual([])
    expect(report.accepted).toBeGreaterThan(0)
  },
  120_000,
)
