// Drill `limit`: many writers call several API processes to fill a queue with a limit, while the processes lose Redis's replies. Then
// callers wait at every process for single tasks to leave the full queue.
import { randomUUID } from 'node:crypto'
import type { BullmqBroker } from '@bullpen/bullmq'
import { openFleet } from '@bullpen/bullmq/internal'
import type { Log, TaskStatus } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'
import type { Drill } from '../../drill.ts'
import { startApis } from '../../environment/api-processes.ts'
import { NAMESPACE, withPrograms } from '../../environment/programs-setup.ts'
import type { Figures } from '../../figures/figures.ts'
import { holdsWithin } from '../../holds-within.ts'
import { type Random, randomFrom } from '../../ledger/random.ts'
import { createCaller } from '../../limit/caller.ts'
import { flood } from '../../limit/flood.ts'
import { limitFigures } from '../../limit/limit-figures.ts'
import { observeQueue } from '../../limit/queue-observer.ts'
import { measureRoom } from '../../limit/room.ts'

/** Each round makes room for more tasks than there are writers, so that some room is left for the writers that are held up. */
const PLANS = {
  small: { maxTasks: 100, writers: 9, rounds: 2, room: 50, blocked: 4 },
  full: { maxTasks: 1_000, writers: 64, rounds: 20, room: 300, blocked: 50 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const PROCESSES = 4
const ROOM_WITHIN_MS = 50
const COMMAND_WITHIN_MS = 60_000

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }
const { queue } = mathFactorial

export const limit: Drill = {
  name: 'limit',
  target(scale) {
    const { maxTasks } = PLANS[scale]
    return {
      text: `never more than ${maxTasks} tasks; every accepted task exists, and every other stored task was reported as unknown, with its id; a blocked caller gets in within p99 <= ${ROOM_WITHIN_MS} ms of room, and none overtakes another`,
      atMost: {
        mostTasks: maxTasks,
        storedUnexplained: 0,
        storedUnnamed: 0,
        faultsWithoutEffect: 0,
        overtaken: 0,
        roomP99Ms: ROOM_WITHIN_MS,
      },
    }
  },
  known: undefined,
  comparable: false, // plain BullMQ has neither an API nor limits
  run: (scale, seed) => fillQueue(PLANS[scale], randomFrom(seed)),
}

function fillQueue(plan: Plan, random: Random): Promise<Figures> {
  return withPrograms({ drill: 'limit', queue }, async ({ redisUrl, apiKey, programs, broker }) => {
    await limitQueue(redisUrl, plan.maxTasks)
    await using opened = new AsyncDisposableStack()
    const apis = opened.adopt(await startApis(programs, redisUrl, PROCESSES), (each) => each.close())
    const observer = opened.adopt(observeQueue(redisUrl, queue), (each) => each.close())
    const caller = createCaller(apiKey)
    const setting = { ...plan, caller, apis: apis.all, broker, observer, queue, random }
    const faults = await flood(setting)
    const room = await measureRoom(setting)
    const stored = await storedTasks(broker)
    return limitFigures({ calls: caller.calls, stored, faults, mostTasks: observer.highest(), room })
  })
}

/** Sets the limit before the API processes start, so that all of them apply it from their first task on. */
async function limitQueue(redisUrl: string, maxTasks: number): Promise<void> {
  const fleet = openFleet({ redisUrl, namespace: NAMESPACE, queues: [queue], log: silent })
  const command = { id: randomUUID(), spec: { action: 'limit', queue, maxTasks }, by: 'drill' } as const
  try {
    // The connection rejects commands until it is open.
    const send = () =>
      fleet.send(command).then(
        () => true,
        () => false,
      )
    if (!(await holdsWithin(COMMAND_WITHIN_MS, send))) throw new Error('the limit was not set')
  } finally {
    await fleet.close()
  }
}

/** No worker runs, and nothing is removed. */
const STATUSES = ['waiting', 'scheduled', 'cancelled'] as const satisfies readonly TaskStatus[]

/** Returns the name of the call of each stored task, by the task's id. */
async function storedTasks(broker: BullmqBroker): Promise<ReadonlyMap<string, string>> {
  const stored = new Map<string, string>()
  for (const status of STATUSES) {
    let cursor: string | undefined
    do {
      const page = await broker.list({ queue, status, limit: 200, cursor })
      for (const { id, meta } of page.tasks) stored.set(id, meta['call'] ?? '')
      cursor = page.next
    } while (cursor !== undefined)
  }
  return stored
}
