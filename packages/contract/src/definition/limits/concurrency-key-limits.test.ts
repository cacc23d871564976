// Tests which limits of concurrency keys a queue accepts.
import { expect, test } from 'vitest'
import { defineQueue } from '../queue.ts'
import type { PerConcurrencyKeyOptions } from './concurrency-key-limits.ts'

const limitsOf = (perConcurrencyKey: PerConcurrencyKeyOptions) =>
  defineQueue({ name: 'mail', limits: { perConcurrencyKey } }).perConcurrencyKey

test('a queue limits each concurrency key, and some keys in another way', () => {
  expect(limitsOf({ concurrency: 3, rate: '100/1m', burst: 10, keys: { acme: { concurrency: 10 } } })).toEqual({
    concurrency: 3,
    rate: { max: 100, perMs: 60_000, burst: 10 },
    keys: { acme: { concurrency: 10 } },
  })
  expect(limitsOf({ rate: '5/1s', keys: { stopped: { concurrency: 0 }, all: {} } })).toEqual({
    rate: { max: 5, perMs: 1_000, burst: 1 },
    keys: { stopped: { concurrency: 0 } },
  })
  expect(limitsOf({})).toBeUndefined()
  expect(defineQueue({ name: 'mail' }).perConcurrencyKey).toBeUndefined()
})

test('the keys of a queue that limits them take turns, and the limits refuse no task', () => {
  const limits = { perConcurrencyKey: { concurrency: 3 } }
  expect(defineQueue({ name: 'mail', limits })).toMatchObject({ fairness: { weights: {} }, limits: undefined })
  const fairness = { weights: { acme: 2 } }
  expect(defineQueue({ name: 'mail', limits, fairness })).toMatchObject({ fairness })
})

test('the length of a key is counted in characters, as in a call', () => {
  const key = '🔑'.repeat(128)
  expect(limitsOf({ keys: { [key]: { concurrency: 1 } } })?.keys).toHaveProperty(key)
  expect(() => limitsOf({ keys: { [`${key}🔑`]: { concurrency: 1 } } })).toThrow('a concurrency key of 129 characters')
})

test.each([
  ['much', 'limits.perConcurrencyKey is "much"; expected an object such as { concurrency: 3 }'],
  [{ concurency: 3 }, 'limits.perConcurrencyKey.concurency is not a limit; expected concurrency, rate, burst, keys'],
  [{ concurency: 3 }, 'did you mean concurrency?'],
  [{ concurrency: 0 }, 'limits.perConcurrencyKey.concurrency is 0; expected a whole number of at least 1'],
  [{ rate: '100' }, `limits.perConcurrencyKey.rate is "100"; expected a number of tasks per period, such as '100/1s'`],
  [{ burst: 3 }, 'limits.perConcurrencyKey.burst has no rate; set limits.perConcurrencyKey.rate as well'],
  [{ rate: '1/1s', burst: 0 }, 'limits.perConcurrencyKey.burst is 0; expected a whole number of at least 1'],
  [{ keys: [] }, 'limits.perConcurrencyKey.keys is []; expected an object such as { acme: { concurrency: 10 } }'],
  [{ keys: { '': {} } }, 'limits.perConcurrencyKey.keys has a concurrency key of 0 characters; expected 1 to 128'],
  [
    { keys: { 'a\x1e': {} } },
    'limits.perConcurrencyKey.keys has the concurrency key "a\\u001e"; expected text without',
  ],
  [{ keys: { acme: 3 } }, 'limits.perConcurrencyKey.keys.acme is 3; expected an object such as { concurrency: 3 }'],
  [{ keys: { acme: { keys: {} } } }, 'limits.perConcurrencyKey.keys.acme.keys is not a limit'],
])('%j is refused: %s', (given, message) => {
  expect(() => limitsOf(given as PerConcurrencyKeyOptions)).toThrow(message)
})
