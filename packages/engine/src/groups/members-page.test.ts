// Tests how the size of outputs bounds a page of a group's members.
import type { TaskId, TaskRecord } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { membersPage } from './members-page.ts'

/** Looks up members whose outputs have this size, and counts how many are looked up at the same time. */
function members(size: number) {
  const counts = { now: 0, most: 0 }
  const lookUp = async (member: number) => {
    counts.now++
    counts.most = Math.max(counts.most, counts.now)
    await undefined
    counts.now--
    const record = { output: 'x'.repeat(size) } as unknown as TaskRecord
    return { member, id: `q-${member}` as TaskId, status: 'completed', record } as const
  }
  return { counts, lookUp }
}

it('a page of small outputs has all members in order', async () => {
  const { counts, lookUp } = members(100)
  const page = await membersPage(200, lookUp)
  expect(page.map(({ member }) => member)).toEqual(Array.from({ length: 200 }, (_, i) => i))
  expect(counts.most).toBe(16)
})

it.each([
  { size: 262_144, length: 4 },
  { size: 1_500_000, length: 1 },
])('a page of outputs of $size characters has $length members', async ({ size, length }) => {
  const page = await membersPage(200, members(size).lookUp)
  expect(page.map(({ member }) => member)).toEqual(Array.from({ length }, (_, i) => i))
})

it('a page without members is empty', async () => {
  expect(await membersPage(0, members(1).lookUp)).toEqual([])
})
