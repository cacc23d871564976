// Tests that members are enqueued once, and that a group is cancelled and ends once, wherever a process dies.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineCatalogue, defineTask, followUp, type TaskId } from '@bullpen/contract'
import { createGroupId, createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { type Group, newGroup, newTask, planFollowUps } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { scriptProxy } from '../internals/index-model/script-proxy.fixture.ts'
import { groupEndedChannel, groupKeys, groupsKey, queueKeys } from '../keys.ts'
import { visitRegistry } from '../leader/visit-registry.ts'
import { ageClaims } from '../outbox/age-claims.fixture.ts'
import { followUpDeliveries } from '../outbox/follow-up-deliveries.ts'
import { createForwarder, type Forwarder, type Outbox, queueOutbox } from '../outbox/forwarder.ts'
import { createTargetQueues } from '../outbox/target-queues.ts'
import { silent } from '../setup.fixture.ts'
import {
  claimEntriesScript,
  claimGroupEntriesScript,
  deleteEntriesScript,
  deleteGroupEntriesScript,
  endMembersScript,
  forwardScript,
  storeRuleScript,
} from '../store/scripts.ts'
import { groupDeliveries } from './group-deliveries.ts'
import { groupOutbox } from './group-outbox.ts'
import { createGroupStore } from './group-store.ts'

const task = defineTask({ name: 'work.item', queue: 'work', input: z.object({}) })

const ENQUEUE = {
  'claims members': claimGroupEntriesScript.lua,
  'adds a member': forwardScript.lua,
  'deletes delivered members': deleteGroupEntriesScript.lua,
}
const CANCEL = {
  'claims the end of a member': claimEntriesScript.lua,
  'reports the end': endMembersScript.lua,
  'claims the cancellation': claimGroupEntriesScript.lua,
  'stores the rule': storeRuleScript.lua,
  'deletes the cancellation': deleteGroupEntriesScript.lua,
  'deletes the end': deleteEntriesScript.lua,
}

const { 'stores the rule': _, ...DELIVER } = CANCEL
const FOLLOW = { ...DELIVER, 'adds the follow-up': forwardScript.lua }

const cases = (steps: Readonly<Record<string, string>>) =>
  Object.entries(steps).flatMap(([step, lua]) => (['before', 'after'] as const).map((when) => ({ step, lua, when })))

/** A group whose members are enqueued, and whose members' ends are reported, only by the processes that a test opens. */
async function openWorld(onError: Group['onError']) {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const proxy = await scriptProxy(redisUrl)
  const common = { redisUrl, namespace, queues: ['work'], sizeLimit: 100_000, log: silent, leads: false }
  const broker = openPatientBroker(common)
  await eventually(() => broker.ping().then(() => true))
  const subscriber = redis.duplicate()
  const announced: string[] = []
  subscriber.on('message', (_channel, id: string) => announced.push(id))
  await subscriber.subscribe(groupEndedChannel(namespace))
  onTestFinished(async () => {
    proxy.close()
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
    subscriber.disconnect()
  })
  const wait = () => () => {}
  const waiters = { wait, watch: wait, close() {} }
  const run = <T>(call: () => Promise<T>) => call()
  const store = createGroupStore({
    registry: visitRegistry(redis, groupsKey(namespace)),
    ...{ redis, namespace, waiters, call: run, codec: undefined, now: Date.now },
    ...{ admit: async () => {}, find: broker.find },
    ...{ forward() {}, onEnded() {} },
  })
  const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  const catalogue = defineCatalogue(task)
  const followUps = planFollowUps({ onEnd: [followUp(task, {})] }, { catalogue, correlationId: undefined })
  await store.create(newGroup(id, { onError }, 'ann', followUps))
  const origin = { id: createTaskId('work', 0, new Uint8Array(10)), enqueuedAt: Date.now(), correlationId: undefined }
  const tasks = [1, 2, 3].map(() => newTask(task, {}, {}, origin))
  const { ids } = await store.add(id, { key: 'k', digest: '', tasks, seal: true })
  const keys = queueKeys(namespace, 'work')

  /** A process with a connection of its own. */
  function openProcess(through = redisUrl) {
    const own = new Redis(through, { maxRetriesPerRequest: null })
    own.on('error', () => {})
    const targets = createTargetQueues(own, namespace)
    onTestFinished(async () => {
      own.disconnect()
    })
    const outbox = groupOutbox({ redis: own, namespace, onEnded() {} }, id)
    const forwardLeft = (from: Outbox) => forwarder.forwardLeft(from, () => false)
    const forwarder: Forwarder = createForwarder({
      deliveries: {
        ...groupDeliveries({
          ...{ redis: own, namespace, targets, now: Date.now, onEnded() {}, onRefused() {} },
          forwardGroup: () => forwardLeft(outbox),
        }),
        task: followUpDeliveries({ targets, now: Date.now, onForwarded() {}, onRefused() {} }),
        runTaskEnd: async () => {},
      },
      onUnreadable() {},
    })
    return {
      forwardGroup: () => forwardLeft(outbox),
      forwardQueue: () => forwardLeft(queueOutbox(own, keys)),
    }
  }

  return {
    ...{ redis, namespace, broker, store, id, ids, keys, proxy, announced, openProcess },
    /** Writes the end of a member, as the script that ends a task does. */
    end: (member: number, letter: string) => redis.xadd(keys.outbox, '*', 'e', `g ${id} ${member} ${letter}`),
    /** Makes every claim old enough for another process to take it over. */
    ageClaims: () => ageClaims(redis, [keys.outbox, groupKeys(namespace, id).outbox]),
    /** Deletes the members, as if they had run and were not kept. */
    async runMembers(): Promise<void> {
      await redis.del(keys.wait, ...ids.map((each: TaskId) => keys.job(each)))
    },
  }
}

/** What a process does not finish because it dies is rejected when the test ends, and its connection with it. */
function dying(work: Promise<unknown>): void {
  work.catch(() => {})
}

it.each(cases(ENQUEUE))(
  'every member is enqueued once if a process dies $when the script that $step',
  async (fault) => {
    const { broker, proxy, ageClaims, runMembers, openProcess, redis, namespace, id } = await openWorld('continue')
    const death = proxy.closeAt({ scripts: [fault.lua], when: fault.when })
    dying(openProcess(proxy.url).forwardGroup())
    await death
    await runMembers()
    await ageClaims()
    const leader = openProcess()
    await leader.forwardGroup()
    await runMembers()
    await leader.forwardGroup()
    expect((await broker.totals('work')).accepted).toBe(3)
    expect(await redis.exists(groupKeys(namespace, id).outbox)).toBe(0)
  },
)

it.each(cases(CANCEL))(
  'the first error cancels a group once, and the group ends once, if a process dies $when the script that $step',
  async (fault) => {
    const { proxy, store, end, ageClaims, openProcess, redis, namespace, id, keys, announced } =
      await openWorld('cancel')
    const leader = openProcess()
    await leader.forwardGroup()
    await end(1, 'd')
    const death = proxy.closeAt({ scripts: [fault.lua], when: fault.when })
    dying(openProcess(proxy.url).forwardQueue())
    await death
    await ageClaims()
    await leader.forwardQueue()
    await ageClaims()
    await leader.forwardQueue()
    expect(await store.find(id)).toMatchObject({ state: 'sealed', cancelled: { reason: 'first_error' } })
    const rules = Object.values(await redis.hgetall(keys.cancelRules)).map((rule) => JSON.parse(rule))
    expect(rules).toMatchObject([{ group: id, queue: 'work' }])
    expect(await redis.exists(keys.outbox, groupKeys(namespace, id).outbox)).toBe(0)
    await Promise.all([end(0, 'x'), end(2, 'x'), end(2, 'x')])
    await leader.forwardQueue()
    expect(await store.find(id)).toMatchObject({ ended: { result: 'failed' }, ends: { dead: 1, cancelled: 2 } })
    await eventually(() => announced.length > 0)
    expect(announced).toEqual([id])
  },
)

it.each(cases(FOLLOW))(
  'the follow-up of a group is enqueued once if a process dies $when the script that $step',
  async (fault) => {
    const { broker, proxy, store, end, ageClaims, openProcess, id, redis, namespace, keys } =
      await openWorld('continue')
    const leader = openProcess()
    await leader.forwardGroup()
    await Promise.all([end(0, 'c'), end(1, 'c'), end(2, 'c')])
    const death = proxy.closeAt({ scripts: [fault.lua], when: fault.when })
    dying(openProcess(proxy.url).forwardQueue())
    await death
    await ageClaims()
    await leader.forwardQueue()
    await ageClaims()
    await leader.forwardQueue()
    expect(await store.find(id)).toMatchObject({ ended: { result: 'completed' } })
    expect((await broker.totals('work')).accepted).toBe(3 + 1)
    expect(await redis.exists(keys.outbox, groupKeys(namespace, id).outbox)).toBe(0)
  },
)

it('a member whose task is deleted before its end does not keep the group from ending', async () => {
  const { broker, ids, openProcess, store, id } = await openWorld('continue')
  const process = openProcess()
  await process.forwardGroup()
  const [queue] = broker.boardQueues
  for (const each of ids) await queue?.remove(each)
  await process.forwardQueue()
  expect(await store.find(id)).toMatchObject({ ended: { result: 'cancelled' }, ends: { removed: 3 } })
})
