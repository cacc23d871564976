// Tests which members of a group a consumer tries to fetch, and how long it pauses when none of them waits.
import type { TaskId } from '@bullpen/contract'
import { fakeClock } from '@bullpen/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { groupCandidates, MAX_CANDIDATES, membersFrom, pauseAfter } from './group-candidates.ts'

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

const idOf = (member: number): TaskId => `q-${member}` as TaskId

const memberOf = (id: TaskId): number => Number(id.slice(2))

function openCandidates(initial: readonly number[]) {
  const clock = fakeClock()
  const state = { members: initial, reads: 0 }
  const refresh = async (): Promise<void> => void state.reads++
  return { clock, state, candidates: groupCandidates({ members: () => state.members, idOf, refresh, clock }) }
}

describe('the members from a number on', () => {
  it('are the free ones in ascending order, whatever the list and the number', () => {
    const numbers = fc.uniqueArray(fc.nat({ max: 60 }))
    fc.assert(
      fc.property(numbers, numbers, fc.nat({ max: 60 }), fc.nat({ max: 9 }), (list, busy, from, limit) => {
        const members = list.toSorted((one, other) => one - other)
        const isFree = (member: number): boolean => !busy.includes(member)
        const expected = members.filter((member) => member >= from && isFree(member)).slice(0, limit)
        expect(membersFrom(members, from, isFree, limit)).toEqual(expected)
      }),
    )
  })
})

describe('candidates', () => {
  it('are the first unfinished members that this consumer does not run', () => {
    const { candidates } = openCandidates([2, 3, 5, 8])
    candidates.fetched(idOf(3))
    expect(candidates.next()).toEqual([2, 5, 8].map(idOf))
    candidates.returned(idOf(3))
    expect(candidates.next()).toEqual([2, 3, 5, 8].map(idOf))
  })

  it('are the next ones at once if none of the first ones waits, and the first ones again after a pause', async () => {
    const { candidates, clock } = openCandidates(upTo(MAX_CANDIDATES + 10))
    expect(candidates.next()).toHaveLength(MAX_CANDIDATES)
    expect(await candidates.noneWaits()).toBe(true)
    expect(candidates.next()).toEqual(upTo(10).map((n) => idOf(MAX_CANDIDATES + n)))
    const pause = candidates.noneWaits()
    let isOver = false
    void pause.then(() => (isOver = true))
    await clock.advance(pauseAfter(MAX_CANDIDATES + 10) - 1)
    expect(isOver).toBe(false)
    await clock.advance(1)
    expect(await pause).toBe(true)
    expect(candidates.next()[0]).toBe(idOf(0))
  })

  it('begin again with the first member if this consumer runs all the later ones', () => {
    const { candidates, state } = openCandidates(upTo(MAX_CANDIDATES + 2))
    candidates.next()
    void candidates.noneWaits()
    for (const member of [MAX_CANDIDATES, MAX_CANDIDATES + 1]) candidates.fetched(idOf(member))
    state.members = [4, MAX_CANDIDATES, MAX_CANDIDATES + 1]
    expect(candidates.next()).toEqual([idOf(4)])
  })

  it('are awaited while there are none, so that nothing is fetched from a queue that the group does not have', async () => {
    const { candidates, clock, state } = openCandidates([])
    expect(candidates.next()).toEqual([])
    const pause = candidates.noneWaits()
    let isOver = false
    void pause.then(() => (isOver = true))
    await clock.advance(10_000)
    expect([isOver, state.reads > 10]).toEqual([false, true])
    state.members = [0]
    await clock.advance(1_000)
    expect(await pause).toBe(true)
    expect(candidates.next()).toEqual([idOf(0)])
  })

  it('are not awaited any more when the consumer stops', async () => {
    const { candidates, clock } = openCandidates([])
    const pause = candidates.noneWaits()
    candidates.stop()
    expect(await pause).toBe(false)
    expect(await candidates.noneWaits()).toBe(false)
    expect(clock.pending()).toBe(0)
  })

  it('reach every waiting member in the order of their numbers, whichever members do not wait', async () => {
    const sizes = fc.nat({ max: 230 })
    const places = fc.array(fc.boolean(), { minLength: 230, maxLength: 230 })
    const property = fc.asyncProperty(sizes, places, async (size, waits) => {
      const { candidates, clock } = openCandidates(upTo(size))
      const waiting = new Set(upTo(size).filter((member) => waits[member]))
      const expected = [...waiting]
      const fetched: number[] = []
      // One pass, in which the store takes the first candidate that waits.
      for (;;) {
        const taken = candidates.next().find((id) => waiting.has(memberOf(id)))
        if (taken !== undefined) {
          waiting.delete(memberOf(taken))
          fetched.push(memberOf(taken))
          candidates.fetched(taken)
          continue
        }
        void candidates.noneWaits()
        await clock.advance(0)
        if (clock.pending() > 0) break
      }
      expect(fetched).toEqual(expected)
    })
    await fc.assert(property, { numRuns: 50 })
  })
})
