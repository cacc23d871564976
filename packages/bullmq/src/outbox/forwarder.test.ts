// Tests that every follow-up is enqueued exactly once, whatever happens to the processes that forward it.
import { followUp } from '@bullpen/contract'
import { planFollowUps } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { endAs, scriptProxy } from '../internals/index-model/script-proxy.fixture.ts'
import { setup, short } from '../setup.fixture.ts'
import { claimEntriesScript, deleteEntriesScript, forwardScript } from '../store/scripts.ts'
import type { Deliveries } from './deliveries.ts'
import { createForwarder, type Outbox, PAGE_SIZE } from './forwarder.ts'
import { catalogue, openQueues, target } from './outbox.fixture.ts'

const STEPS = {
  'claims entries': claimEntriesScript.lua,
  'adds a task': forwardScript.lua,
  'deletes entries': deleteEntriesScript.lua,
}

const CASES = Object.entries(STEPS).flatMap(([step, lua]) =>
  (['before', 'after'] as const).map((when) => ({ step, lua, when })),
)

async function behindProxy() {
  const queues = await openQueues()
  const proxy = await scriptProxy(queues.redisUrl)
  onTestFinished(() => proxy.close())
  return { ...queues, proxy, faulty: queues.forwarder(proxy.url) }
}

it.each(CASES)(
  'every follow-up is enqueued once if the connection is lost $when the script that $step',
  async (fault) => {
    const { release, proxy, faulty, runTargets, ageClaims, forwarder, entries, added } = await behindProxy()
    await release(3)
    const cut = Promise.withResolvers<void>()
    proxy.arm({ scripts: [fault.lua], when: fault.when, onFault: cut.resolve })
    faulty.wake()
    await cut.promise
    // The client sends the script again.
    await faulty.settled()
    await runTargets()
    await ageClaims()
    await forwarder().forwardLeft()
    expect(await added()).toBe(3)
    expect(await entries()).toBe(0)
  },
)

it.each(CASES)('every follow-up is enqueued once if its process dies $when the script that $step', async (fault) => {
  const { release, proxy, faulty, runTargets, ageClaims, forwarder, entries, added } = await behindProxy()
  await release(3)
  const death = proxy.closeAt({ scripts: [fault.lua], when: fault.when })
  faulty.wake()
  await death
  await runTargets()
  await ageClaims()
  const leader = forwarder()
  await leader.forwardLeft()
  await runTargets()
  await leader.forwardLeft()
  expect(await added()).toBe(3)
  expect(await entries()).toBe(0)
})

it('an entry that two processes deliver at the same time is enqueued once', async () => {
  const { release, forwarder, ageClaims, added, entries } = await openQueues()
  await release(40)
  const processes = [forwarder(), forwarder(), forwarder()]
  for (let round = 0; round < 3; round++) {
    await Promise.all([...processes.map((each) => each.forwardLeft()), ageClaims()])
  }
  expect(await added()).toBe(40)
  expect(await entries()).toBe(0)
})

it('a claim that is recent is left to its process', async () => {
  const { release, forwarder, outbox, added, entries } = await openQueues()
  await release(2)
  expect((await outbox.claim({ leftForMs: undefined, cursor: '0-0' })).entries).toHaveLength(2)
  await forwarder().forwardLeft()
  expect([await added(), await entries()]).toEqual([0, 2])
})

it('more entries than fit into a page are forwarded by one call, as is what arrives meanwhile', async () => {
  const { release, forwarder, added, entries } = await openQueues()
  await release(250)
  const one = forwarder()
  one.wake()
  await release(10)
  one.wake()
  await one.settled()
  expect([await added(), await entries()]).toEqual([260, 0])
})

it('an entry that this version cannot read stays, and the others are forwarded', async () => {
  const { release, forwarder, redis, keys, added, entries } = await openQueues()
  await redis.xadd(keys.source.outbox, '*', 'e', 'w of a newer version')
  await release(2)
  await forwarder().forwardLeft()
  expect([await added(), await entries()]).toEqual([2, 1])
})

it('a follow-up keeps its own follow-ups and the count for its API key when it is forwarded', async () => {
  const { enqueue, broker, forwarder, redis, keys } = await openQueues()
  const nested = followUp(target, { n: 1 }, { onFailure: [followUp(target, { n: 2 })] })
  const id = await enqueue({ onEnd: [nested] })
  await broker.cancel(id, { stoppable: true })
  await forwarder().forwardLeft()
  const [first = ''] = await redis.lrange(keys.target.wait, 0, -1)
  expect(await redis.hgetall(keys.target.job(first))).toMatchObject({
    atEnd: '+',
    caller: 'outbox',
    followUps: expect.stringMatching(/^f\{/),
  })
})

it('a commit that is sent twice releases its follow-ups once', async () => {
  const proxied = await setup({ leads: false })
  const proxy = await scriptProxy(proxied.redisUrl)
  onTestFinished(() => proxy.close())
  await proxied.startPool(proxy.url)
  const cut = Promise.withResolvers<void>()
  proxy.arm({ ...endAs('completed'), when: 'after', onFault: cut.resolve })
  const followUps = planFollowUps({ onSuccess: [followUp(target, {})] }, { catalogue, correlationId: undefined })
  const id = await proxied.enqueue(short, { followUps })
  await cut.promise
  await eventually(async () => (await proxied.broker.find(id))?.status === 'completed')
  await eventually(() => proxied.events.some(({ event }) => event === 'attempt.ended'))
  expect((await proxied.broker.totals('rig')).outbox.entries).toBe(1)
})

const none = async () => {}
const NO_DELIVERIES: Deliveries = { task: none, member: none, memberEnd: none, groupCancel: none, runTaskEnd: none }

it('outboxes that are always busy do not keep others from being forwarded', async () => {
  const forwarder = createForwarder({ deliveries: NO_DELIVERIES, onUnreadable() {} })
  const pages = new Map<string, number>()
  const isOver = (): boolean => [...pages.values()].some((count) => count >= 10)
  const outboxes = Array.from({ length: 9 }, (_, i): Outbox => {
    const name = `o${i}`
    return {
      name,
      async claim() {
        pages.set(name, (pages.get(name) ?? 0) + 1)
        return { fresh: isOver() ? 0 : PAGE_SIZE, cursor: '0-0', entries: [] }
      },
      remove: async () => {},
    }
  })
  for (const outbox of outboxes) forwarder.wake(outbox)
  await forwarder.settled()
  expect(Math.min(...pages.values())).toBeGreaterThanOrEqual(9)
})

it('a target that does not respond does not hold up the others, and its entries are deleted once they are delivered', async () => {
  const { promise: responding, resolve: respond } = Promise.withResolvers<void>()
  const forwarder = createForwarder({
    deliveries: {
      ...NO_DELIVERIES,
      async memberEnd(claimed, onDelivered) {
        const delivering = claimed.map(async ({ id, entry }) => {
          if (entry.member === 0) await responding
          onDelivered([id])
        })
        await Promise.all(delivering)
      },
    },
    onUnreadable() {},
  })
  const group = 'group-01jd3v7n8q0000000000000000'
  let page = 0
  const removed: string[] = []
  const outbox: Outbox = {
    name: 'o',
    async claim() {
      page++
      // The first member of the group is in a queue that does not respond.
      const entries = [0, 1].map((member) => [`${page}-${member}`, `g ${group} ${member} c`] as const)
      return { fresh: page < 20 ? PAGE_SIZE : 2, cursor: '0-0', entries }
    },
    remove: async (ids) => void removed.push(...ids),
  }
  forwarder.wake(outbox)
  await eventually(() => removed.length === 20)
  expect(removed).toEqual(Array.from({ length: 20 }, (_, i) => `${i + 1}-1`))
  respond()
  await forwarder.settled()
  expect(new Set(removed).size).toBe(40)
})

it.each(Array.from({ length: 12 }, (_, ticks) => ticks))(
  'an outbox that is woken %i ticks after its last look is looked at again',
  async (ticks) => {
    const { promise: looked, resolve } = Promise.withResolvers<void>()
    let looks = 0
    const outbox = {
      name: 'o',
      async claim() {
        looks++
        resolve()
        return { fresh: 0, cursor: '0-0', entries: [] }
      },
      remove: async () => {},
    }
    const forwarder = createForwarder({ deliveries: NO_DELIVERIES, onUnreadable() {} })
    forwarder.wake(outbox)
    await looked
    for (let i = 0; i < ticks; i++) await undefined
    forwarder.wake(outbox)
    await eventually(() => looks === 2)
    await forwarder.settled()
  },
)
