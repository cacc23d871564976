// Tests how a worker follows the group that it runs, also while the store does not respond.
import { getEventListeners } from 'node:events'
import { BullpenError, type GroupId } from '@bullpen/contract'
import { fakeClock } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { addMembers, cancelGroup, createGroup, type GroupModel } from '../groups/group-state.ts'
import { sha256 } from '../node/index.ts'
import type { Groups } from '../ports/broker/groups.ts'
import { createOnlineGroup } from './online-group.ts'

const id = 'group-01jd3v7n8q0000000000000000' as GroupId

const unavailable = new BullpenError('redis_unavailable', 'Redis is not connected')

const NEVER = new AbortController().signal

/** A group with two members in each of these queues, which the test can change, end or lose. */
function openWorld(...queues: readonly string[]) {
  const clock = fakeClock()
  const created = createGroup({ id, by: 'ann', onError: 'continue', totalMs: 60_000, keepMs: 60_000 }, 0)
  const withMembers = (model: GroupModel, key: string, names: readonly string[]): GroupModel => {
    const step = addMembers(model, { key, digest: '', queues: names, seal: false }, 0)
    if (typeof step === 'string') throw new Error(step)
    return step.model
  }
  const doubled = queues.flatMap((queue) => [queue, queue])
  const state = { model: withMembers(created, 'all', doubled) as GroupModel | undefined, outages: 0, reads: 0 }
  let changed = Promise.withResolvers<void>()
  const respond = (): void => {
    if (state.outages-- > 0) throw unavailable
  }
  const groups: Pick<Groups, 'unfinished' | 'waitUntilEnded'> = {
    async unfinished() {
      state.reads++
      respond()
      if (state.model === undefined) return undefined
      const { group, members, queues: positions } = state.model
      const left = members.flatMap((end, member) => (end === undefined ? [member] : []))
      return { group, byQueue: Map.groupBy(left, (member) => group.queues[positions[member] ?? 0] ?? '') }
    },
    async waitUntilEnded(_, signal) {
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
      for (;;) {
        respond()
        const group = state.model?.group
        if (group === undefined || group.state === 'ended' || signal.aborted) return group
        await Promise.race([changed.promise, aborted])
      }
    },
  }
  const online = createOnlineGroup({ id, groups, queues: ['a', 'b'], clock, sha256 })
  const change = (model: GroupModel | undefined, { isNoticed = true } = {}): void => {
    state.model = model
    if (!isNoticed) return
    changed.resolve()
    changed = Promise.withResolvers()
  }
  return {
    ...{ clock, online, state },
    add: (...names: readonly string[]) => change(state.model && withMembers(state.model, names.join(), names)),
    /** Ends the group. */
    end: (options = {}) =>
      change({ ...cancelGroup(created, { at: 1, reason: 'cancelled', by: 'ann' }).model }, options),
    lose: () => change(undefined),
  }
}

it('the candidates of a queue are the unfinished members in this queue', async () => {
  const { online } = openWorld('a', 'b')
  expect(online.candidates('a').next()).toEqual([])
  await online.open(NEVER)
  expect(online.candidates('a').next()).toHaveLength(2)
  expect(online.candidates('b').next()).not.toEqual(online.candidates('a').next())
  expect(online.candidates('c').next()).toEqual([])
})

it('members that are added later become candidates within about a second', async () => {
  const { online, add, clock, state } = openWorld('a')
  await online.open(NEVER)
  const candidates = online.candidates('b')
  add('b')
  await clock.advance(1_001)
  candidates.next()
  await clock.advance(0)
  expect(candidates.next()).toHaveLength(1)
  expect(state.reads).toBe(2)
})

it('opening waits until the store is available, or until the signal aborts', async () => {
  const { online, clock, state } = openWorld('a')
  state.outages = 2
  const opening = online.open(NEVER)
  await clock.advance(1_999)
  expect(online.group()).toBeUndefined()
  await clock.advance(1)
  await opening
  expect(online.group()).toMatchObject({ id, state: 'open' })

  const another = openWorld('a')
  another.state.outages = Number.POSITIVE_INFINITY
  const stop = new AbortController()
  const stopped = another.online.open(stop.signal)
  await another.clock.advance(5_000)
  stop.abort()
  await stopped
  expect([another.online.group(), another.clock.pending()]).toEqual([undefined, 0])
})

it('the end of the group is noticed, also after an outage', async () => {
  const { online, end, clock, state } = openWorld('a')
  await online.open(NEVER)
  state.outages = 1
  const ended = online.ended(NEVER)
  await clock.advance(500)
  end()
  expect(online.isDone()).toBe(false)
  await clock.advance(500)
  await ended
  expect([online.isDone(), online.group()?.state, clock.pending()]).toEqual([true, 'ended', 0])
})

it('the end of the group is noticed although the message about it was lost', async () => {
  const { online, end, clock } = openWorld('a')
  await online.open(NEVER)
  const ended = online.ended(NEVER)
  end({ isNoticed: false })
  await clock.advance(9_999)
  expect(online.isDone()).toBe(false)
  await clock.advance(1)
  await ended
  expect([online.isDone(), clock.pending()]).toEqual([true, 0])
})

it('a wait for the end that is repeated adds one listener to the signal, which ends the wait and leaves none', async () => {
  const { online, clock } = openWorld('a')
  await online.open(NEVER)
  const stop = new AbortController()
  const ended = online.ended(stop.signal)
  await clock.advance(30_000)
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
  stop.abort()
  await ended
  expect([getEventListeners(stop.signal, 'abort').length, online.isDone(), clock.pending()]).toEqual([0, false, 0])
})

it('a consumer that looks for members notices the end of the group', async () => {
  const { online, end, clock } = openWorld('a')
  await online.open(NEVER)
  const ended = online.ended(NEVER)
  await clock.advance(2_000)
  end({ isNoticed: false })
  online.candidates('a').next()
  await clock.advance(0)
  await ended
  expect(online.isDone()).toBe(true)
})

it('a group that has ended while the worker drained is noticed by the last look', async () => {
  const { online, end } = openWorld('a')
  await online.open(NEVER)
  end()
  await online.recheck()
  expect(online.isDone()).toBe(true)
})

it('a group that is lost has not ended, and the wait for its end goes on until the drain', async () => {
  const { online, lose, clock } = openWorld('a')
  await online.open(NEVER)
  const drain = new AbortController()
  const ended = online.ended(drain.signal)
  lose()
  expect(await online.failed).toMatchObject({ code: 'group_not_found' })
  drain.abort()
  await ended
  expect([online.isDone(), online.group()?.state, clock.pending()]).toEqual([false, 'open', 0])
})

it('a queue without a pool is refused at the beginning, and reported when it is added later', async () => {
  await expect(openWorld('a', 'c').online.open(NEVER)).rejects.toMatchObject({ code: 'queue_not_found' })
  const { online, add, clock } = openWorld('a')
  await online.open(NEVER)
  add('c')
  await clock.advance(1_001)
  online.candidates('a').next()
  expect(await online.failed).toMatchObject({
    code: 'queue_not_found',
    message: expect.stringContaining("queue 'c', for which this worker has no pool; it has pools for a, b"),
  })
})
