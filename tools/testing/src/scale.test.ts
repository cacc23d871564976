// The amounts of a run, by its scale.
import { expect, inject, it } from 'vitest'
import { amount, seeds } from './scale.ts'

const scale = inject('scale')

it(`gives the amount of a ${scale} run`, () => {
  const of = { small: 2, full: 3 }
  expect([amount(of), seeds(of)]).toEqual(scale === 'full' ? [3, [1, 2, 3]] : [2, [1, 2]])
})
