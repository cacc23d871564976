import { describe, expect, it } from 'vitest'
import { SharedLockTable } from './shared-lock-table.ts'

/** One table as both threads see it. */
function twoViews(slots: number, units?: number) {
  const here = SharedLockTable.of(slots, units)
  return { here, there: new SharedLockTable(here.shared) }
}

describe('a table of locks', () => {
  it('shows the other thread what was written, without a message', () => {
    const { here, there } = twoViews(2)
    here.take(1, 'cpu-01', 'token:1', 5)
    expect([there.read(0), there.read(1)]).toMatchObject([undefined, { id: 'cpu-01', token: 'token:1' }])
    here.release(1)
    expect(there.read(1)).toBeUndefined()
  })

  it('stores ids of any length and script', () => {
    const id = 'ü\n'.repeat(3_000)
    expect(SharedLockTable.of(1).fits(id.length)).toBe(false)
    const { here, there } = twoViews(1, id.length + 10)
    here.take(0, id, 'token:1', 0)
    expect(there.read(0)).toMatchObject({ id, token: 'token:1' })
  })

  it('applies a renewal or loss to the lock that was read, not to the next one of the slot', () => {
    const { here, there } = twoViews(1)
    here.take(0, 'first', 'token:1', 10)
    const first = there.read(0)
    if (first === undefined) throw new Error('it is held')
    there.markRenewed(first, 20)
    expect(here.since(0)).toBe(20)
    here.release(0)
    here.take(0, 'second', 'token:1', 30)
    there.markRenewed(first, 40)
    there.markLost(first)
    expect(here.since(0)).toBe(30)
    expect(here.isLost(0)).toBe(false)
  })
})
