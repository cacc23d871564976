// Drills `group` and `group-cluster`: the members of a group are spread over three queues, and one of them fails. The group then cancels
// the others. A reader of the members' events loses its connection to the API meanwhile. In `group`, workers are cut off from Redis when
// the member fails. In `group-cluster`, the queues are on the three nodes of a Redis Cluster.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GroupId } from '@bullpen/contract'
import { createGroupId, createTaskId, ID_RANDOM_BYTES, MAX_MEMBERS_AT_ONCE } from '@bullpen/contract/internal'
import type { Broker, NewTask } from '@bullpen/engine'
import { type Group, newGroup, newTask } from '@bullpen/engine/internal'
import { type FaultProxy, faultProxy } from '@bullpen/testkit'
import type { Drill } from '../drill.ts'
import { startApi } from '../environment/drill-api.ts'
import {
  type DrillRedis,
  type DrillSetup,
  openRedis,
  type Records,
  withDrillSetup,
} from '../environment/drill-setup.ts'
import { openCluster } from '../environment/redis-cluster.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { eventFigures, readEvents } from '../group/event-reader.ts'
import { holdsWithin } from '../holds-within.ts'
import type { Effect } from '../ledger/effects.ts'
import { randomFrom } from '../ledger/random.ts'
import { booking, secondWork, thirdWork, work } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'

/**
 * `slots` is the number of slots per queue in each process. `cutsMs` is how long each worker that is cut off stays so after the error: for
 * less time than it trusts the cancels that it knows, or for longer.
 */
const PLANS = {
  small: { processes: 2, slots: 5, members: 600, cutsMs: [3_200] },
  full: { processes: 4, slots: 17, members: 10_000, cutsMs: [1_500, 3_200] },
} as const

const DEFINITIONS = [work, secondWork, thirdWork] as const
const TASK_MS = 100
/** No member may start later than this after the error. */
const LAST_START_MS = 200
/** For this long, a worker that is cut off from Redis trusts the cancels that it knows. */
const TRUSTED_MS = 2_500
/** How long workers are cut off before the error. */
const CUT_BEFORE_MS = 200
/** The leader ends the waiting members page by page. */
const WITHIN_MS = 60_000
const POLL_MS = 20

export const group: Drill = groupOn('group', async () => ({ ...(await openRedis()), queues: queues() }), true)
export const groupCluster: Drill = groupOn('group-cluster', () => openCluster(queues()), false)

function queues(): readonly string[] {
  return DEFINITIONS.map(({ queue }) => queue)
}

/** A proxy forwards to one server only, so no worker of a cluster can be cut off. */
function groupOn(name: string, open: () => Promise<DrillRedis>, cutsOff: boolean): Drill {
  const cutOff = `; in a worker that is cut off, none later than ${TRUSTED_MS} ms`
  return {
    name,
    target: (scale) => ({
      text: `${PLANS[scale].members} members in three queues, one of which fails: no member starts more than ${LAST_START_MS} ms later${cutsOff ? cutOff : ''}; every member has ended, none started twice, and the group ended with the same counts; a reader that lost its connection twice got every event once`,
      atMost: {
        ...{ lastStartMs: LAST_START_MS, restarted: 0, effectsRepeated: 0, groupMiscounted: 0 },
        ...{ eventsLost: 0, eventsRepeated: 0 },
        ...(cutsOff && { lastStartCutOffMs: TRUSTED_MS }),
      },
    }),
    known: undefined,
    comparable: false,
    run(scale, seed, system) {
      const pools = Object.fromEntries(queues().map((queue) => [queue, PLANS[scale].slots]))
      const act = (setup: DrillSetup) => cancelByFirstError(scale, seed, setup, cutsOff)
      return withDrillSetup(system, { pools }, act, open)
    },
  }
}

async function cancelByFirstError(
  scale: Scale,
  seed: number,
  { broker, fleet, effects, records, redisUrl, namespace }: DrillSetup,
  cutsOff: boolean,
): Promise<Figures> {
  const { processes, members, cutsMs } = PLANS[scale]
  // The member fails when between a fifth and two fifths of the others have run.
  const failing = Math.floor(members * (0.2 + 0.2 * randomFrom(seed)()))
  await using opened = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-gate-'))
  opened.defer(() => rmSync(dir, { recursive: true, force: true }))
  const proxyTo = async (url: string): Promise<FaultProxy> =>
    opened.adopt(await faultProxy(url), (proxy) => proxy.close())
  const api = opened.adopt(await startApi({ redisUrl, namespace }), (each) => each.close())
  const front = await proxyTo(api.url)
  const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  await broker.groups.create(newGroup(id, { onError: 'cancel' }, 'drill'))
  const reader = readEvents(api.client(front.url.replace('redis:', 'http:')).group(id))
  opened.defer(() => reader.close().then(() => {}))
  const gate = join(dir, 'fail')
  const accepted = await addMembers(broker, id, members, (n) => memberTask(n, n === failing ? gate : undefined))
  // A member that is cancelled before it is enqueued has no events.
  await holdsWithin(WITHIN_MS, async () => (await enqueued(broker)) === members)
  const links = new Map<string, FaultProxy>()
  const start = async (): Promise<void> => {
    const link = cutsOff ? await proxyTo(redisUrl) : undefined
    const worker = await fleet.start(link && { redisUrl: link.url })
    if (link !== undefined) links.set(worker.name, link)
  }
  await Promise.all(Array.from({ length: processes }, start))
  front.reset()

  const stopped = (): Effect | undefined => effects().find(({ what }) => what === 'stop')
  await holdsWithin(WITHIN_MS, () => stopped() !== undefined)
  const others = [...links].filter(([name]) => name !== stopped()?.worker)
  const cuts = cutsMs.flatMap((afterMs, n) => others.slice(n, n + 1).map(([name, link]) => ({ name, link, afterMs })))
  // Redis still gives tasks to these workers, which learn of them after the error.
  for (const { link } of cuts) link.cutAnswers()
  await sleep(CUT_BEFORE_MS)
  writeFileSync(gate, '')
  front.reset()
  const mended = cuts.map(async ({ link, afterMs }) => {
    await sleep(afterMs)
    link.mend()
  })
  await Promise.all(mended)
  const ended = await broker.groups.waitUntilEnded(id, AbortSignal.timeout(WITHIN_MS))
  await holdsWithin(WITHIN_MS, () => reader.isComplete())
  const ledger = await records(accepted)
  return {
    ...groupFigures(accepted, ledger, ended),
    ...startFigures(
      ledger.effects,
      cuts.map(({ name }) => name),
    ),
    ...eventFigures(await reader.close(), accepted, ledger.effects),
  }
}

/** Returns the ids of the members. */
async function addMembers(
  broker: Broker,
  id: GroupId,
  members: number,
  task: (n: number) => NewTask,
): Promise<readonly string[]> {
  const accepted: string[] = []
  for (let from = 0; from < members; from += MAX_MEMBERS_AT_ONCE) {
    const tasks = Array.from({ length: Math.min(MAX_MEMBERS_AT_ONCE, members - from) }, (_, i) => task(from + i))
    const seal = from + tasks.length === members
    const { ids } = await broker.groups.add(id, { key: `from ${from}`, digest: '', tasks, seal })
    accepted.push(...ids)
  }
  return accepted
}

/** With a gate, the member fails when this file exists. */
function memberTask(n: number, gate: string | undefined): NewTask {
  const enqueuedAt = Date.now()
  const origin = (queue: string) => ({
    id: createTaskId(queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES)),
    enqueuedAt,
    correlationId: undefined,
  })
  if (gate !== undefined) {
    const input = { of: n, ms: 0, undoes: false, fails: true, stop: { at: 'ending' as const, until: gate } }
    return newTask(booking, input, {}, origin(booking.queue))
  }
  const definition = DEFINITIONS[n % DEFINITIONS.length] ?? work
  return newTask(definition, { ms: TASK_MS, listens: true }, {}, origin(definition.queue))
}

async function enqueued(broker: Broker): Promise<number> {
  await sleep(POLL_MS)
  const totals = await Promise.all(queues().map((queue) => broker.totals(queue)))
  return totals.reduce((sum, { accepted }) => sum + accepted, 0)
}

function groupFigures(accepted: readonly string[], ledger: Records, group: Group | undefined): Figures {
  // The workers count a member that they have fetched and then end without starting it. The ledger does not contain it.
  const { miscounted: _, ...figures } = figuresOf({ accepted, ...ledger, interruptions: [], exits: [] })
  const statuses = [...ledger.ends.values()].map(({ status }) => status)
  const count = (status: string): number => statuses.filter((each) => each === status).length
  const { completed = 0, dead = 0, cancelled = 0 } = group?.ended === undefined ? {} : group.ends
  const failedAt = ledger.effects.find(({ what }) => what === 'failure')?.at
  return {
    ...figures,
    // One member is meant to be dead.
    failed: accepted.length - count('completed') - count('cancelled') - 1,
    groupEndedMs: failedAt === undefined || group?.ended === undefined ? undefined : group.ended.at - failedAt,
    groupMiscounted:
      Math.abs(completed - count('completed')) +
      Math.abs(dead - count('dead')) +
      Math.abs(cancelled - count('cancelled')),
  }
}

/** Returns how long after the error members were still started, by connected workers and by those that were cut off. */
function startFigures(
  effects: readonly Effect[],
  cutOff: readonly string[],
): Pick<Figures, 'lastStartMs' | 'lastStartCutOffMs'> {
  const failedAt = effects.find(({ what }) => what === 'failure')?.at
  if (failedAt === undefined) return {}
  const starts = effects.filter(({ what }) => what === 'start')
  const last = (own: readonly Effect[]): number => Math.max(0, ...own.map(({ at }) => at - failedAt))
  const connected = starts.filter(({ worker }) => !cutOff.includes(worker))
  const others = starts.filter(({ worker }) => cutOff.includes(worker))
  return { lastStartMs: last(connected), ...(cutOff.length > 0 && { lastStartCutOffMs: last(others) }) }
}
