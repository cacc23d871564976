// Tests which limit of the settings applies to an API key.
import { expect, test } from 'vitest'
import { enqueueRateOf } from './key-limits.ts'

test('a key has its own rate, that of every key, or none', () => {
  const rateOf = enqueueRateOf({
    '*': { enqueueRate: '10/1s' },
    shop: { enqueueRate: '500/1m' },
    trusted: { enqueueRate: 'none' },
    plain: {},
  })
  expect(rateOf('shop')).toEqual({ max: 500, perMs: 60_000 })
  expect(rateOf('trusted')).toBeUndefined()
  expect(rateOf('plain')).toEqual({ max: 10, perMs: 1_000 })
  expect(rateOf('0813ba6d')).toEqual({ max: 10, perMs: 1_000 })
})

test('without limits, no key has a rate', () => {
  expect(enqueueRateOf()('shop')).toBeUndefined()
  expect(enqueueRateOf({ shop: { enqueueRate: '1/1s' } })('other')).toBeUndefined()
})
