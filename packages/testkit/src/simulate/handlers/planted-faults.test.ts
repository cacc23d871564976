// The simulation finds the planted fault in every handler that is not idempotent, and none in the handlers that are.
import { describe, expect, it } from 'vitest'
import { batchFault } from './batch.fixture.ts'
import { checkThenActFault } from './check-then-act.fixture.ts'
import { childTaskFault } from './child-task.fixture.ts'
import { compensationFault, lateCompensation } from './compensation.fixture.ts'
import { counterFault } from './counter.fixture.ts'
import { fallbackFault } from './fallback.fixture.ts'
import { fileFault } from './file.fixture.ts'
import { followUpFault } from './follow-up.fixture.ts'
import { mailFault } from './mail.fixture.ts'
import { parallelFault } from './parallel.fixture.ts'
import { partialResultFault } from './partial-result.fixture.ts'
import { paymentFault } from './payment.fixture.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'
import { swallowedAbortFault } from './swallowed-abort.fixture.ts'
import { twoStepsFault } from './two-steps.fixture.ts'

const plantedFaults: readonly PlantedFault[] = [
  mailFault,
  paymentFault,
  fileFault,
  counterFault,
  twoStepsFault,
  batchFault,
  partialResultFault,
  swallowedAbortFault,
  compensationFault,
  fallbackFault,
  parallelFault,
  checkThenActFault,
  childTaskFault,
  followUpFault,
]

describe('simulate finds', () => {
  it.each(plantedFaults)('$name', async ({ faulty, faults }) => {
    const found = await faulty()
    const summary = found.faults.map(({ kind, effect, runs }) => ({
      kind,
      effect,
      foundBy: ['crash', 'drain', 'timeout', 'lock_lost'].filter((each) =>
        runs.some(({ interruptions }) => interruptions.some((interruption) => interruption.kind === each)),
      ),
    }))
    expect(summary.toSorted(byEffect), found.summary).toEqual(faults.toSorted(byEffect))
    expect(() => found.assertIdempotent()).toThrow(expect.objectContaining({ code: 'not_idempotent' }))
  })

  it.each(plantedFaults)('nothing in the handler that avoids $name', async ({ idempotent }) => {
    const found = await idempotent()
    expect(found.faults, found.summary).toEqual([])
    found.assertIdempotent()
  })

  // The handlers with fewer calls, because the number of runs grows with the square of the number of points.
  it.each([
    compensationFault,
    fallbackFault,
    swallowedAbortFault,
    partialResultFault,
    counterFault,
    paymentFault,
    checkThenActFault,
  ])('nothing in the handler that avoids $name, if it is interrupted twice', async (planted) => {
    const found = await planted.idempotent({ pairs: true })
    expect(found.faults, found.summary).toEqual([])
    expect(found.runs).toBeGreaterThan(100)
  })

  it('a compensation that comes too late only if an attempt is interrupted twice', async () => {
    expect((await lateCompensation()).faults).toEqual([])
    const { faults, summary } = await lateCompensation({ pairs: true })
    expect(faults, summary).toMatchObject([{ kind: 'missing', effect: 'stock.reserve("chair", <idempotency key>)' }])
    const kinds = faults[0]?.runs.map(({ interruptions }) => interruptions.map(({ kind }) => kind).join(', '))
    expect(new Set(kinds)).toEqual(new Set(['drain, lock_lost', 'timeout, lock_lost']))
    expect(summary).toMatch(
      /before bank\.charge \(.+\) by a drain, and then before stock\.release \(.+\) by a lost lock/,
    )
  })
})

function byEffect(a: { readonly effect: string | undefined }, b: { readonly effect: string | undefined }): number {
  return `${a.effect}` < `${b.effect}` ? -1 : 1
}
