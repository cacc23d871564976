// Random programs for the models of lanes.
import { amount, type Scale } from '@bullpen/testing'
import fc from 'fast-check'

export interface Step {
  /** The name of the operation. */
  readonly name: string
  readonly pick: number
  readonly n: number
}

const number = fc.nat({ max: 9_999 })

/** Returns programs of this many steps. The operations are listed by name, each with its weight. */
export function programsOf(
  operations: Readonly<Record<string, readonly [weight: number, operation: unknown]>>,
  steps: Readonly<Record<Scale, number>>,
): fc.Arbitrary<Step[]> {
  const length = amount(steps)
  const weighted = Object.entries(operations).map(([name, [weight]]) => ({ weight, arbitrary: fc.constant(name) }))
  const step: fc.Arbitrary<Step> = fc.record({ name: fc.oneof(...weighted), pick: number, n: number })
  return fc.array(step, { minLength: length, maxLength: length, size: 'max' })
}
