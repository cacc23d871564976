// Tests which settings of turns a queue accepts.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from './catalogue.ts'
import { weightOf } from './fairness.ts'
import { defineQueue } from './queue.ts'
import { defineTask } from './task-definition.ts'

test('the keys of a queue take turns if its definition says so, and have the weight 1 unless it says another', () => {
  expect(defineQueue({ name: 'mail' }).fairness).toBeUndefined()
  expect(defineQueue({ name: 'mail', fairness: true }).fairness).toEqual({ weights: {} })
  const { fairness = expect.fail() } = defineQueue({ name: 'mail', fairness: { weights: { acme: 3, 'x.y': 0.001 } } })
  expect(['acme', 'x.y', 'other', 'constructor'].map((key) => weightOf(fairness, key))).toEqual([3, 0.001, 1, 1])
})

test('the length of a key is counted as when a task is enqueued with it', () => {
  const longest = '\u{1F600}'.repeat(128)
  expect(z.string().max(128).safeParse(longest).success).toBe(true)
  expect(defineQueue({ name: 'mail', fairness: { weights: { [longest]: 2 } } }).fairness?.weights[longest]).toBe(2)
})

test('a catalogue refuses two definitions of a queue of which only one is fair', () => {
  const input = z.object({})
  const one = defineTask({ name: 'mail.one', queue: defineQueue({ name: 'mail', fairness: true }), input })
  const two = defineTask({ name: 'mail.two', queue: 'mail', input })
  expect(() => defineCatalogue(one, two)).toThrow(/fairness of queue 'mail' is \{"weights":\{\}\} in 'mail.one'/)
})

test.each([
  [false, 'fairness is false; expected true or an object such as { weights: { acme: 3 } }'],
  ['weighted', 'fairness is "weighted"; expected true or an object'],
  [[], 'fairness is []; expected true or an object'],
  [{ weight: {} }, 'fairness.weight is not a setting; expected true or an object such as { weights: { acme: 3 } }'],
  [{ weight: {} }, 'did you mean weights?'],
  [{ weights: 3 }, 'fairness.weights is 3; expected an object such as { acme: 3 }'],
  [{ weights: { '': 1 } }, 'fairness.weights has a concurrency key of 0 characters; expected 1 to 128'],
  [{ weights: { ['a'.repeat(129)]: 1 } }, 'fairness.weights has a concurrency key of 129 characters'],
  [{ weights: { 'a\n': 2 } }, 'fairness.weights has the concurrency key "a\\n"; expected text without line breaks'],
  [{ weights: { acme: 0 } }, 'fairness.weights gives "acme" the weight 0; expected a number from 0.001 to 1000'],
  [{ weights: { acme: 1_001 } }, 'fairness.weights gives "acme" the weight 1001'],
  [{ weights: { acme: '3' } }, 'fairness.weights gives "acme" the weight "3"'],
  [{ weights: { acme: Number.NaN } }, 'fairness.weights gives "acme" the weight NaN'],
])('the setting %j is refused', (fairness, message) => {
  // Plain JavaScript may pass what the types refuse.
  expect(() => defineQueue({ name: 'mail', fairness: fairness as never })).toThrow(
    expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
  )
})
