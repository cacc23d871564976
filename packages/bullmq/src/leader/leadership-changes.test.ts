import { expect, it } from 'vitest'
import { countLeadershipChanges } from './leadership-changes.ts'

const MINUTE = 60_000

it('changes of the leadership count for ten minutes, also those between two answers', () => {
  const { saw, counted } = countLeadershipChanges()
  expect(counted(0)).toEqual({ changes: 0, overMs: 0 })
  saw(7, 0)
  saw(7, 1_000)
  expect(counted(2_000)).toEqual({ changes: 0, overMs: 2_000 })
  saw(8, MINUTE)
  saw(11, 2 * MINUTE)
  // An answer may be older than the previous one.
  saw(10, 3 * MINUTE)
  expect(counted(3 * MINUTE)).toEqual({ changes: 4, overMs: 3 * MINUTE })
  expect(counted(11 * MINUTE)).toEqual({ changes: 3, overMs: 10 * MINUTE })
  expect(counted(12 * MINUTE)).toEqual({ changes: 0, overMs: 10 * MINUTE })
})
