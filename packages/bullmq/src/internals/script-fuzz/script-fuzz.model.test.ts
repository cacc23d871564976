// All scripts that change something, in random order on a real Redis: after each step, every task is in one place, and all counts, sums,
// locks, lanes, events and outboxes agree with the tasks (./invariants.fixture.ts). At the end of each program, everything ends.
//
// Every sixteenth step sends each of its scripts twice, as a client does that got no reply, and reads only the second reply. A longer run
// is in ./long-fuzz.model.test.ts.
import { expect, it } from 'vitest'
import { withEveryOperation } from './fuzz.fixture.ts'
import { fuzz } from './fuzz-seeds.fixture.ts'
import { unsentScripts } from './operations.fixture.ts'

it('every task is in one place and counted once after operations that send every script', async () => {
  const unsentBy = async (seed: number) =>
    unsentScripts(await fuzz({ seeds: [seed], steps: 1_200, adapt: withEveryOperation }))
  let unsent = await unsentBy(1)
  // Whether an operation has anything to send depends on how much time has passed, so a script gets further chances.
  for (let seed = 2; seed <= 3 && unsent.length > 0; seed++) {
    const again = await unsentBy(seed)
    unsent = unsent.filter((name) => again.includes(name))
  }
  expect(unsent).toEqual([])
})
