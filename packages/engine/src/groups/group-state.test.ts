// Tests that any sequence of changes keeps the laws of a group: it ends exactly once, and only the first end of a member counts.
import type { MemberEnd } from '@bullpen/contract'
import { createGroupId, MEMBER_ENDS } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Group } from '../ports/broker/groups.ts'
import {
  addMembers,
  cancelGroup,
  createGroup,
  endedMembers,
  endMember,
  FORCED_END_MS,
  type GroupEffect,
  type GroupModel,
  type GroupStep,
  sealGroup,
  visitGroup,
} from './group-state.ts'

const id = createGroupId(0, new Uint8Array(10))
const TOTAL_MS = 1_000
const SETTINGS = { id, by: 'test', totalMs: TOTAL_MS, keepMs: 1 }

const change = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    key: fc.constantFrom('a', 'b', 'c'),
    queues: fc.array(fc.constantFrom('cpu', 'mail'), { minLength: 1, maxLength: 3 }),
    seal: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('seal' as const) }),
  fc.record({ kind: fc.constant('cancel' as const) }),
  fc.record({
    kind: fc.constant('end' as const),
    member: fc.nat({ max: 10 }),
    end: fc.constantFrom(...MEMBER_ENDS),
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, TOTAL_MS, FORCED_END_MS) }),
)

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

function apply(model: GroupModel, each: Change, now: number): GroupStep {
  switch (each.kind) {
    case 'add': {
      const step = addMembers(model, { ...each, digest: each.queues.join() }, now)
      return typeof step === 'string' ? { model, effects: [] } : step
    }
    case 'seal':
      return sealGroup(model, now)
    case 'cancel':
      return cancelGroup(model, { at: now, reason: 'cancelled', by: 'ann' })
    case 'end':
      return endMember(model, each.member, each.end, now)
    case 'wait':
      return visitGroup(model, now)
  }
}

it('a group ends once all members have ended and it is sealed, and never changes again', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.constantFrom('cancel', 'continue'), (changes, onError) => {
      let model = createGroup({ ...SETTINGS, onError }, 0)
      const effects: GroupEffect[] = []
      const firstEnds = new Map<number, MemberEnd>()
      let now = 0
      for (const each of changes) {
        if (each.kind === 'wait') now += each.ms
        const before = model
        const step = apply(model, each, now)
        model = step.model
        effects.push(...step.effects)
        const { group } = model
        if (each.kind === 'end' && each.member < before.group.count && before.group.state !== 'ended') {
          if (!firstEnds.has(each.member)) firstEnds.set(each.member, each.end)
        }
        expect(model.members.length).toBe(group.count)
        expect(endedMembers(group)).toBeLessThanOrEqual(group.count)
        expect(group.state === 'ended').toBe(group.ended !== undefined)
        if (group.state === 'sealed') expect(endedMembers(group)).toBeLessThan(group.count)
        if (before.group.state === 'ended') expect(model).toBe(before)
      }
      for (const [member, end] of firstEnds) expect(model.members[member]).toBe(end)
      expect(effects.filter(({ kind }) => kind === 'ended')).toHaveLength(model.group.state === 'ended' ? 1 : 0)
      expect(effects.filter(({ kind }) => kind === 'cancel')).toHaveLength(model.group.cancelled === undefined ? 0 : 1)
    }),
  )
})

it('a group always ends: at the latest, an hour after its total timeout', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      let model = createGroup({ ...SETTINGS, onError: 'continue' }, 0)
      for (const each of changes) model = apply(model, each, 0).model
      model = visitGroup(model, TOTAL_MS).model
      model = visitGroup(model, TOTAL_MS + FORCED_END_MS).model
      expect(model.group.state).toBe('ended')
    }),
  )
})

/** Returns the result of a sealed group whose members end in these ways. */
function resultAfter(ends: readonly MemberEnd[], onError: 'cancel' | 'continue' = 'continue'): Group {
  const added = addMembers(
    createGroup({ ...SETTINGS, onError }, 0),
    { key: 'a', digest: '', queues: ends.map(() => 'cpu'), seal: true },
    0,
  )
  if (typeof added === 'string') throw new Error(added)
  return ends.reduce((model, end, member) => endMember(model, member, end, 1).model, added.model).group
}

it.each([
  [['completed', 'completed'], 'completed'],
  [['completed', 'dead'], 'failed'],
  [['expired', 'cancelled'], 'failed'],
  [['completed', 'cancelled'], 'cancelled'],
  [['completed', 'removed'], 'cancelled'],
] as const)('members that end as %j give the result %s', (ends, result) => {
  expect(resultAfter(ends).ended).toEqual({ at: 1, result })
})

it('a sealed group without members is completed, and one that is cancelled while it is empty is cancelled', () => {
  const empty = createGroup({ ...SETTINGS, onError: 'continue' }, 0)
  expect(sealGroup(empty, 1).effects).toEqual([{ kind: 'ended', result: 'completed' }])
  const { model } = cancelGroup(empty, { at: 1, reason: 'cancelled', by: 'ann' })
  expect(model.group.ended?.result).toBe('cancelled')
})

it('a repeated request adds nothing, also when the group is sealed, and another request with its key is refused', () => {
  const request = { key: 'a', digest: '1', queues: ['cpu', 'cpu'], seal: true }
  const first = addMembers(createGroup({ ...SETTINGS, onError: 'continue' }, 0), request, 0)
  if (typeof first === 'string') throw new Error(first)
  expect(addMembers(first.model, request, 1)).toMatchObject({ start: 0, model: { group: { count: 2 } } })
  expect(addMembers(first.model, { ...request, digest: '2' }, 1)).toBe('reused')
  expect(addMembers(first.model, { ...request, key: 'b' }, 1)).toBe('sealed')
})

it('a group refuses a seventeenth queue, and more than 100,000 members', () => {
  const group = createGroup({ ...SETTINGS, onError: 'continue' }, 0)
  const queues = Array.from({ length: 17 }, (_, i) => `q${i}`)
  expect(addMembers(group, { key: 'a', digest: '', queues, seal: false }, 0)).toBe('queues')
  const many = Array.from({ length: 100_001 }, () => 'cpu')
  expect(addMembers(group, { key: 'a', digest: '', queues: many, seal: false }, 0)).toBe('full')
})

it('the first error cancels the other members once, and the group fails', () => {
  const { cancelled, ended } = resultAfter(['dead', 'cancelled', 'dead'], 'cancel')
  expect(cancelled).toEqual({ at: 1, reason: 'first_error', by: `group ${id}` })
  expect(ended?.result).toBe('failed')
})
