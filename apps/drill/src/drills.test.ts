// Every drill, small: it meets its target, and has had something to measure.
import { expect, it } from 'vitest'
import { DRILLS } from './drills.ts'

// Together: what they do is waiting, for locks to run out above all.
it.concurrent.each(Object.keys(DRILLS))(
  '%s loses nothing, and meets its target',
  async (name) => {
    const report = await DRILLS[name]?.('small', 1)
    expect(report?.missed).toEqual([])
    expect(report?.accepted).toBeGreaterThan(0)
  },
  120_000,
)
