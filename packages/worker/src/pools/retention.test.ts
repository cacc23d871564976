import { defineQueue } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { retentionOf } from './retention.ts'

const DAY_MS = 86_400_000
const settings = {
  completedRetention: '24h',
  deadRetention: '30d',
  cancelledRetention: '7d',
  expiredRetention: 'none',
} as const

it('a queue without a retention of its own has the ages of the settings and the default counts', () => {
  const { retention } = defineQueue({ name: 'mail' })
  expect(retentionOf(settings, retention)).toEqual({
    completed: { ageMs: DAY_MS, count: undefined },
    dead: { ageMs: 30 * DAY_MS, count: 100_000 },
    cancelled: { ageMs: 7 * DAY_MS, count: 100_000 },
    expired: { ageMs: undefined, count: 100_000 },
  })
})

it('a limit in the definition of a queue replaces the default, and none removes it', () => {
  const { retention } = defineQueue({
    name: 'mail',
    retention: { completed: { count: 10 }, dead: { age: 'none', count: 'none' }, expired: { age: '1h' } },
  })
  expect(retentionOf(settings, retention)).toEqual({
    completed: { ageMs: DAY_MS, count: 10 },
    dead: { ageMs: undefined, count: undefined },
    cancelled: { ageMs: 7 * DAY_MS, count: 100_000 },
    expired: { ageMs: DAY_MS / 24, count: 100_000 },
  })
})
