// Tests that amount() and seeds() depend on the scale of the run.
import { expect, inject, it } from 'vitest'
import { amount, seeds } from './scale.ts'

const scale = inject('scale')

it(`a ${scale} run has its own amount and seeds`, () => {
  const of = { small: 2, full: 3 }
  expect([amount(of), seeds(of)]).toEqual(scale === 'full' ? [3, [1, 2, 3]] : [2, [1, 2]])
})
