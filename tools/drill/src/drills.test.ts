// Every drill, small: nothing is lost, doubled or used up, and what was interrupted is in work again.
import { describe, expect, it } from 'vitest'
import { perform } from './drill.ts'
import { APART, DRILLS } from './drills.ts'

/** Beside other tests a machine is no measure of time: how long is for `npm run drill` to judge, and whether at all for us. */
const isTime = (missed: string): boolean => /^\w+Ms [\d.]+, /.test(missed)

// Two at once: what they do is mostly waiting, and their processes need the machine when they start.
describe.each([
  { pair: ['kill', 'deploy'] },
  { pair: ['long', 'cutoff'] },
  { pair: ['block', 'clocks'] },
  { pair: ['cancel', 'receipts'] },
])('drills', ({ pair }) => {
  it.concurrent.each(pair)(
    '%s, at small scale, misses no target but in time',
    async (name) => {
      const drill = DRILLS.get(name)
      const report = drill && (await perform(drill, { scale: 'small', seed: 1, peer: false }))
      expect(report?.missed.filter((missed) => !isTime(missed))).toEqual([])
    },
    120_000,
  )
})

it('has every drill in its list, and apart what needs a Docker engine', () => {
  expect([...APART.keys()]).toEqual(['containers'])
  expect([...DRILLS.keys()]).toEqual(['kill', 'deploy', 'long', 'cutoff', 'block', 'clocks', 'cancel', 'receipts'])
})
