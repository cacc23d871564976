// Cancels of tasks that are not running here are remembered for a limited time, and in a limited number.
import type { TaskId } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { createRememberedCancels, REMEMBERED_MS } from './remembered-cancels.ts'

const ANN = { by: 'ann', retriedAt: 0 }
const task = (id: string, envelope: object = {}) => ({ id: id as TaskId, envelope })

describe('a remembered cancel', () => {
  it('is returned once', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', ANN, 0)
    expect([cancels.take(task('a'), 1), cancels.take(task('a'), 1)]).toEqual(['ann', undefined])
  })

  it('is forgotten after ten seconds, so that the task can be retried', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', ANN, 0)
    cancels.add('b', { by: '', retriedAt: 0 }, 1)
    expect([cancels.take(task('a'), REMEMBERED_MS), cancels.take(task('b'), REMEMBERED_MS)]).toEqual([undefined, ''])
  })

  it('is remembered for longer if it is repeated', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', ANN, 0)
    cancels.add('b', { by: 'bob', retriedAt: 0 }, 1)
    cancels.add('a', ANN, 2)
    expect([cancels.take(task('a'), REMEMBERED_MS + 1), cancels.take(task('b'), REMEMBERED_MS + 1)]).toEqual([
      'ann',
      undefined,
    ])
  })

  it('applies only to the run of the task for which it was requested', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', ANN, 0)
    cancels.add('b', { by: 'ann', retriedAt: 17 }, 0)
    cancels.add('c', { by: 'ann', retriedAt: 17 }, 0)
    const runs = [task('a', { retriedAt: 17 }), task('b', { retriedAt: 17 }), task('c', { retriedAt: 18 })]
    expect(runs.map((run) => cancels.take(run, 1))).toEqual([undefined, 'ann', undefined])
  })

  it('is dropped when a thousand later ones have arrived', () => {
    const cancels = createRememberedCancels()
    for (let i = 0; i <= 1_000; i++) cancels.add(`${i}`, ANN, i)
    expect([cancels.take(task('0'), 1_000), cancels.take(task('1'), 1_000)]).toEqual([undefined, 'ann'])
  })
})
