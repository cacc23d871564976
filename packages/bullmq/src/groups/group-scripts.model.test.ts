// Compares the scripts that change a group with the engine's functions, for random sequences of changes on a real Redis.
import { randomBytes, randomUUID } from 'node:crypto'
import type { GroupId } from '@bullpen/contract'
import { createGroupId, MAX_GROUP_MEMBERS, MAX_GROUP_QUEUES, MEMBER_ENDS } from '@bullpen/contract/internal'
import {
  addMembers,
  cancelGroup,
  createGroup,
  endMember,
  FORCED_END_MS,
  type Group,
  type GroupModel,
  type GroupStep,
  sealGroup,
  visitGroup,
} from '@bullpen/engine/internal'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { END_LETTERS } from '../groups/end-letters.ts'
import { groupEndedChannel, groupKeys, groupQueuesChannel } from '../keys.ts'
import { runScript } from '../scripts/script.ts'
import {
  addMembersScript,
  cancelGroupScript,
  claimGroupEntriesScript,
  createGroupScript,
  deleteGroupEntriesScript,
  endMembersScript,
  readMembersScript,
  sealGroupScript,
  visitGroupScript,
} from '../store/scripts.ts'
import { END_CODES, groupOf } from './group-record.ts'

const change = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    digest: fc.constantFrom('1', '1', '2'),
    queues: fc.array(fc.constantFrom('cpu', 'mail', 'web'), { minLength: 1, maxLength: 4 }),
    seal: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('seal' as const) }),
  fc.record({ kind: fc.constant('cancel' as const) }),
  fc.record({
    kind: fc.constant('end' as const),
    ends: fc.array(fc.tuple(fc.nat({ max: 12 }), fc.constantFrom(...MEMBER_ENDS)), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('time out' as const) }),
  fc.record({ kind: fc.constant('force' as const) }),
)

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

async function rig(onError: Group['onError']) {
  const redis = new Redis(inject('redisUrl'))
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const id = createGroupId(Date.now(), randomBytes(10))
  const keys = groupKeys(namespace, id)
  const args = { id, channel: groupEndedChannel(namespace) }
  const create = { by: 'test', onError, totalMs: 3_600_000, keepMs: 86_400_000, spareMs: 1_000, lines: '', digest: '' }
  const reply = await runScript(redis, createGroupScript, keys, create)
  const first = reply === 'reused' ? undefined : groupOf(id, reply[0])
  if (first === undefined) throw new Error('no group')
  return {
    redis,
    id,
    keys,
    first,
    async apply(each: Change): Promise<string | undefined> {
      switch (each.kind) {
        case 'add': {
          const { key, digest, queues, seal } = each
          const limits = { maxMembers: MAX_GROUP_MEMBERS, maxQueues: MAX_GROUP_QUEUES }
          const more = queues.flatMap((queue) => [queue, '{}'])
          const queuesChannel = groupQueuesChannel(namespace)
          const given = { ...args, ...limits, queuesChannel, key, digest, seal: seal ? '1' : '' }
          return String(await runScript(redis, addMembersScript, keys, given, more))
        }
        case 'seal':
          await runScript(redis, sealGroupScript, keys, args)
          return undefined
        case 'cancel':
          await runScript(redis, cancelGroupScript, keys, { ...args, by: 'ann' })
          return undefined
        case 'end': {
          const more = each.ends.flatMap(([member, end]) => [member, END_LETTERS[end]])
          return (await runScript(redis, endMembersScript, keys, args, more))?.[1] || undefined
        }
        case 'time out':
          await redis.hset(keys.meta, 'timeoutAt', 1)
          return (
            (await runScript(redis, visitGroupScript, keys, { ...args, forcedEndMs: FORCED_END_MS }))?.[3] || undefined
          )
        case 'force':
          return (await runScript(redis, visitGroupScript, keys, { ...args, forcedEndMs: -1 }))?.[3] || undefined
      }
    },
    async read() {
      const [fields, ends, queues] = await runScript(redis, readMembersScript, keys, { from: 0, limit: 200 })
      return { group: groupOf(id, fields), members: ends.map((code) => END_CODES[code]), queues }
    },
  }
}

/** Applies a change to the model. Returns what the script returns. */
function applyToModel(model: GroupModel, each: Change, now: number): { model: GroupModel; answer: string | undefined } {
  const result = (step: GroupStep) => step.effects.find((effect) => effect.kind === 'ended')?.result
  switch (each.kind) {
    case 'add': {
      const step = addMembers(model, each, now)
      return typeof step === 'string' ? { model, answer: step } : { model: step.model, answer: String(step.start) }
    }
    case 'seal':
      return { model: sealGroup(model, now).model, answer: undefined }
    case 'cancel':
      return { model: cancelGroup(model, { at: now, reason: 'cancelled', by: 'ann' }).model, answer: undefined }
    case 'end': {
      const steps: GroupStep[] = []
      for (const [member, end] of each.ends) steps.push(endMember(steps.at(-1)?.model ?? model, member, end, now))
      return { model: steps.at(-1)?.model ?? model, answer: steps.map(result).find(Boolean) }
    }
    case 'time out': {
      const late = { ...model, group: { ...model.group, timeoutAt: 1 } }
      // The cancellation is too recent for the group to be ended by force.
      const step = model.group.cancelled === undefined ? visitGroup(late, now) : { model: late, effects: [] }
      return { model: step.model, answer: result(step) }
    }
    case 'force': {
      if (model.group.cancelled === undefined) {
        const step = visitGroup(model, now)
        return { model: step.model, answer: result(step) }
      }
      const step = visitGroup(model, model.group.cancelled.at + FORCED_END_MS)
      return { model: step.model, answer: result(step) }
    }
  }
}

/** Replaces times, which differ, by whether they are set. */
function timeless(group: Group | undefined) {
  if (group === undefined) return undefined
  const { sealedAt, cancelled, ended, createdAt: _, timeoutAt: _timeoutAt, ...rest } = group
  return {
    ...rest,
    isSealed: sealedAt !== undefined,
    cancelled: cancelled && { ...cancelled, at: 0 },
    ended: ended && { ...ended, at: 0 },
  }
}

it('the scripts change a group as the model does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 25 }),
      fc.constantFrom('cancel' as const, 'continue' as const),
      async (changes, onError) => {
        const { redis, id, keys, first, apply, read } = await rig(onError)
        try {
          const { createdAt, timeoutAt, keepMs } = first
          let model = createGroup({ id, by: 'test', onError, totalMs: timeoutAt - createdAt, keepMs }, createdAt)
          expect(timeless(first)).toEqual(timeless(model.group))
          for (const each of changes) {
            const expected = applyToModel(model, each, Date.now())
            const answer = await apply(each)
            expect(answer).toEqual(expected.answer)
            model = expected.model
            const found = await read()
            expect(timeless(found.group)).toEqual(timeless(model.group))
            expect(found.queues).toEqual(model.queues)
            expect(found.members).toEqual(model.members)
          }
          for (const key of await redis.keys(`${keys.meta.slice(0, -'meta'.length)}*`)) {
            expect(await redis.pttl(key)).toBeGreaterThan(0)
          }
        } finally {
          redis.disconnect()
        }
      },
    ),
    { numRuns: 60 },
  )
})

async function groupWith(members: number, onError: Group['onError'] = 'cancel') {
  const made = await rig(onError)
  onTestFinished(() => made.redis.disconnect())
  const queues = Array.from({ length: members }, () => 'cpu' as const)
  await made.apply({ kind: 'add', key: 'a', digest: '1', queues, seal: true })
  const args = { id: made.id as GroupId, channel: 'c' }
  async function claim(limit: number, idleMs: number | '' = '') {
    const claiming = { ...args, limit, idleMs, cursor: '0-0' }
    const [, , entries, result] = await runScript(made.redis, claimGroupEntriesScript, made.keys, claiming)
    return { entries, result }
  }
  const remove = (ids: readonly string[]) => runScript(made.redis, deleteGroupEntriesScript, made.keys, {}, ids)
  return { ...made, claim, remove }
}

it('an entry is claimed once, and again only if it has not been deleted for some time', async () => {
  const { claim, remove, redis, keys } = await groupWith(3)
  const { entries } = await claim(2)
  expect(entries.map(([, text]) => text.split(' ')[2])).toEqual(['0', '1'])
  expect((await claim(2)).entries.map(([, text]) => text.split(' ')[2])).toEqual(['2'])
  expect((await claim(2)).entries).toEqual([])
  await remove(entries.slice(0, 1).map(([entry]) => entry))
  expect((await claim(10, 0)).entries.map(([, text]) => text.split(' ')[2])).toEqual(['1', '2'])
  expect((await claim(10, 60_000)).entries).toEqual([])
  await remove((await claim(10, 0)).entries.map(([entry]) => entry))
  expect(await redis.exists(keys.outbox)).toBe(0)
  expect(await redis.hget(keys.meta, 'outboxBytes')).toBe('0')
})

it('a cancelled group ends the members that were not claimed, and hands out its cancellations at once', async () => {
  const { claim, remove, apply, read, id } = await groupWith(500)
  const first = await claim(3)
  await remove(first.entries.slice(0, 1).map(([entry]) => entry))
  await apply({ kind: 'end', ends: [[0, 'dead']] })
  const { entries } = await claim(100)
  expect(entries.map(([, text]) => text)).toEqual([`k ${id} cpu group ${id}`])
  expect((await read()).group?.ends).toMatchObject({ dead: 1, cancelled: 497 })
  // Entries 1 and 2 were claimed before, and may have been enqueued.
  expect((await claim(100, 0)).entries.map(([, text]) => text.split(' ')[0])).toEqual(['m', 'm', 'k'])
})

it('what follows from a cancellation is owed until it is deleted', async () => {
  const { claim, remove, redis, keys, id } = await groupWith(2)
  const report = () => runScript(redis, endMembersScript, keys, { id, channel: 'c' }, [0, 'd'])
  expect(await report()).toEqual([1, ''])
  expect(await report()).toEqual([1, ''])
  const { entries } = await claim(100)
  await remove(entries.map(([entry]) => entry))
  // The reply may have been lost.
  await remove(entries.map(([entry]) => entry))
  expect(await report()).toEqual([0, ''])
})

it('the last end of a cancelled group is announced, whichever script causes it', async () => {
  const { claim, redis, keys, id, read } = await groupWith(2)
  await runScript(redis, cancelGroupScript, keys, { id, channel: 'c', by: 'ann' })
  expect(await claim(100)).toMatchObject({ result: 'cancelled', entries: [[expect.any(String), `k ${id} cpu ann`]] })
  expect((await read()).group).toMatchObject({ state: 'ended', ends: { cancelled: 2 } })
})
