// Tests that a line keeps its key and its index, however the lines are divided into requests.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { blockOf, firstPart, groupLines, indexOf, tasksOf } from './blocks.ts'
import type { BadLine, TaskLine } from './task-lines.ts'

const line = (number: number, bytes = 10): TaskLine => ({ number, bytes, task: { task: 'a.b', input: number } })

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values
}

test('every line is in one group, with lines of its block, and its task is at its place in the block', async () => {
  const lines = fc
    .uniqueArray(fc.integer({ min: 1, max: 5_000 }), { maxLength: 300 })
    .chain((numbers) =>
      fc.tuple(
        ...numbers
          .toSorted((a, b) => a - b)
          .map((number) => fc.tuple(fc.constant(number), fc.integer({ min: 1, max: 100 }), fc.boolean())),
      ),
    )
    .map((all) => all.map(([number, bytes, isBad]) => (isBad ? { number, problem: 'x' } : line(number, bytes))))
  await fc.assert(
    fc.asyncProperty(lines, fc.integer({ min: 1, max: 2_000 }), async (given, maxBytes) => {
      const bad: BadLine[] = []
      const groups: (readonly TaskLine[])[] = []
      for await (const group of groupLines(each(given), maxBytes, (one) => bad.push(one))) groups.push(group)
      expect(bad).toEqual(given.filter((one) => 'problem' in one))
      expect(groups.flat()).toEqual(given.filter((one) => !('problem' in one)))
      for (const group of groups) {
        expect(new Set(group.map(blockOf)).size).toBe(1)
        const bytes = group.reduce((sum, one) => sum + one.bytes, 0)
        expect(group.length === 1 || bytes <= maxBytes).toBe(true)
        const tasks = tasksOf(group)
        expect(tasks.length).toBeLessThanOrEqual(1_000)
        expect(tasks.filter(({ input }) => input !== null)).toHaveLength(group.length)
        for (const one of group) {
          expect(tasks[indexOf(one)]).toBe(one.task)
          expect((blockOf(one) - 1) * 1_000 + indexOf(one) + 1).toBe(one.number)
        }
      }
    }),
  )
})

test('a part of the lines has at least one line, and otherwise as many bytes as allowed', () => {
  const lines = [line(1, 10), line(2, 10), line(3, 10)]
  expect(firstPart(lines, 5)).toEqual([lines[0]])
  expect(firstPart(lines, 20)).toEqual(lines.slice(0, 2))
  expect(firstPart(lines, 30)).toEqual(lines)
  expect(firstPart([], 30)).toEqual([])
})
