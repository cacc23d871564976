// Tests that a missing run, a second task for a number and a task that was added twice are all counted.
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { runsOf } from './runs-of.ts'

const run = (id: string, of: number, fencingToken = 1): Effect[] =>
  (['start', 'end'] as const).map((what) => ({ what, id, fencingToken, worker: 'w1', at: 0, of }))

const CASES = [
  {
    name: 'one task for each number',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2)],
    counted: [2, 0, 0],
  },
  { name: 'a number without a task', effects: run('drill-after-a', 1), counted: [1, 1, 0] },
  {
    name: 'a task that has not ended',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2).slice(0, 1)],
    counted: [1, 1, 0],
  },
  {
    name: 'two tasks for a number',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2), ...run('drill-after-c', 2)],
    counted: [2, 0, 1],
  },
  {
    name: 'a task that was added again',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2), ...run('drill-after-b', 2)],
    counted: [2, 0, 1],
  },
  {
    name: 'a later attempt of a task',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2), ...run('drill-after-b', 2, 2)],
    counted: [2, 0, 0],
  },
  {
    name: 'a task for a number that is not expected',
    effects: [...run('drill-after-a', 1), ...run('drill-after-b', 2), ...run('drill-after-c', 3)],
    counted: [3, 0, 1],
  },
  { name: 'tasks of other queues', effects: [...run('drill-a', 1), ...run('drill-undo-b', 2)], counted: [0, 2, 0] },
]

it.each(CASES)('the runs of $name are counted', ({ effects, counted: [done, missing, extra] }) => {
  expect(runsOf(effects, 'drill-after', [1, 2])).toEqual({ run: done, missing, extra })
})
