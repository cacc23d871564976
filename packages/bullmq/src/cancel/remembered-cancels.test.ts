// Cancels of tasks that are not running here are remembered for a limited time, and in a limited number.
import { describe, expect, it } from 'vitest'
import { createRememberedCancels, REMEMBERED_MS } from './remembered-cancels.ts'

describe('a remembered cancel', () => {
  it('is returned once', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', 'ann', 0)
    expect([cancels.take('a', 1), cancels.take('a', 1)]).toEqual(['ann', undefined])
  })

  it('is forgotten after ten seconds, so that the task can be retried', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', 'ann', 0)
    cancels.add('b', '', 1)
    expect([cancels.take('a', REMEMBERED_MS), cancels.take('b', REMEMBERED_MS)]).toEqual([undefined, ''])
  })

  it('is remembered for longer if it is repeated', () => {
    const cancels = createRememberedCancels()
    cancels.add('a', 'ann', 0)
    cancels.add('b', 'bob', 1)
    cancels.add('a', 'ann', 2)
    expect([cancels.take('a', REMEMBERED_MS + 1), cancels.take('b', REMEMBERED_MS + 1)]).toEqual(['ann', undefined])
  })

  it('is dropped when a thousand later ones have arrived', () => {
    const cancels = createRememberedCancels()
    for (let i = 0; i <= 1_000; i++) cancels.add(`${i}`, 'ann', i)
    expect([cancels.take('0', 1_000), cancels.take('1', 1_000)]).toEqual([undefined, 'ann'])
  })
})
