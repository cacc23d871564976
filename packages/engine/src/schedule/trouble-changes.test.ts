// Tests that each trouble is reported once when it begins and once when it ends.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Trouble } from './trouble.ts'
import { countTroubles, type ReportedTrouble, troubleChanges } from './trouble-changes.ts'

const kinds = ['failing', 'overlapping', 'missed', 'unreadable'] as const
const troubles: fc.Arbitrary<readonly Trouble[]> = fc.uniqueArray(
  fc.record({ kind: fc.constantFrom(...kinds), since: fc.nat(), detail: fc.constant('') }),
  {
    selector: ({ kind }) => kind,
  },
)

it('begins and ends of each kind alternate, and what is reported is always what is wrong', () => {
  fc.assert(
    fc.property(fc.array(troubles, { maxLength: 20 }), (history) => {
      let reported: readonly ReportedTrouble[] = []
      const open = new Map<string, number>()
      for (const now of history) {
        const changes = troubleChanges(now, reported)
        for (const { kind, since } of changes.ended) {
          // The end names the time at which the trouble was reported to have begun.
          expect(open.get(kind)).toBe(since)
          open.delete(kind)
        }
        for (const { kind, since } of changes.begun) {
          expect(open.has(kind)).toBe(false)
          open.set(kind, since)
        }
        reported = changes.reported
        const isWrong = now.map(({ kind }) => kind).toSorted()
        expect([...open.keys()].toSorted()).toEqual(isWrong)
        expect(reported.map(({ kind }) => kind).toSorted()).toEqual(isWrong)
      }
    }),
  )
})

it('counts the schedules of each kind, also those of which there are none', () => {
  const failing = { kind: 'failing', since: 1 } as const
  expect(countTroubles([failing, { kind: 'missed', since: 2 }, failing])).toEqual({
    failing: 2,
    overlapping: 0,
    unreadable: 0,
    missed: 1,
  })
})
