// Tests what a worker reports about the stalls of its event loop.
import type { TaskEvent, TaskId } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { createStallMemory } from './recent-stalls.ts'

const stall = (stalledMs: number, task: string | undefined) =>
  ({
    ...({
      event: 'event_loop.stalled',
      task,
      id: 'cpu-1' as TaskId,
      fencingToken: 1,
      attempt: 1,
      location: undefined,
    } as const),
    stalledMs,
  }) satisfies TaskEvent

it('stalls are added up, and forgotten after a minute', () => {
  let now = 0
  const memory = createStallMemory(() => now)
  expect(memory.recent()).toBeUndefined()
  memory.note(stall(2_000, 'cpu.slow'))
  now = 30_000
  memory.note(stall(1_500, 'cpu.other'))
  expect(memory.recent()).toEqual({ count: 2, stalledMs: 3_500, lastTask: 'cpu.other' })
  now = 60_000
  expect(memory.recent()).toEqual({ count: 1, stalledMs: 1_500, lastTask: 'cpu.other' })
  now = 90_000
  expect(memory.recent()).toBeUndefined()
})
