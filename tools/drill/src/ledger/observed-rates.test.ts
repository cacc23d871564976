// Tests the comparison of observed rates with a ledger.
import { expect, it } from 'vitest'
import { rateErrorPercent } from './observed-rates.ts'

/** Two events per second for a minute. */
const times = Array.from({ length: 120 }, (_, i) => i * 500)
const at = [20, 30, 40, 50]

it('rates that equal the rates of the ledger have no error, even if single samples are early or late', () => {
  expect(
    rateErrorPercent(
      at.map((each) => ({ at: each, perSecond: 2 })),
      times,
      10,
    ),
  ).toBe(0)
  expect(
    rateErrorPercent(
      at.map((each, i) => ({ at: each, perSecond: i % 2 === 0 ? 1.5 : 2.5 })),
      times,
      10,
    ),
  ).toBe(0)
})

it('events that were counted twice or not at all are an error', () => {
  expect(
    rateErrorPercent(
      at.map((each) => ({ at: each, perSecond: 4 })),
      times,
      10,
    ),
  ).toBe(100)
  expect(
    rateErrorPercent(
      at.map((each) => ({ at: each, perSecond: 1.9 })),
      times,
      10,
    ),
  ).toBe(5)
})

it('without samples or events, the error is infinite', () => {
  expect(rateErrorPercent([], times, 10)).toBe(Number.POSITIVE_INFINITY)
  expect(rateErrorPercent([{ at: 20, perSecond: 0 }], [], 10)).toBe(Number.POSITIVE_INFINITY)
})
