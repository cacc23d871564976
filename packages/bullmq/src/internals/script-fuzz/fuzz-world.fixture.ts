// The world of the index's model (../index-model/world.fixture.ts), with a leader that works on request, a fleet, groups, runs, and what
// the operations remember of the tasks.
import type { GroupId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import type { Fleet, RunSettings } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { openFleet } from '../../fleet/fleet.ts'
import { silent } from '../../setup.fixture.ts'
import { modelTask } from '../index-model/model-task.fixture.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { type Held, openWorld, type World } from '../index-model/world.fixture.ts'
import type { Known } from './invariants.fixture.ts'
import { type FuzzLeader, fuzzLeader } from './leader.fixture.ts'

/** The queue to which some tasks' follow-ups go. */
export const OTHER_QUEUE = 'later'

export interface FuzzWorld extends World {
  readonly leader: FuzzLeader
  readonly fleet: Fleet
  /** The jobs that a worker has lost and still works on. */
  readonly late: Held[]
  readonly unlocked: Set<string>
  readonly expiring: Set<string>
  /** The id that each idempotency key has got. */
  readonly remembered: Map<string, string>
  readonly groups: GroupId[]
  readonly runs: RunSettings[]
  /** The task that was enqueued last. */
  last: NewTask | undefined
  /** What must not happen and has been reported since it was read. */
  readonly faults: string[]
  readonly turn: Known['turn']
  /** Enqueues a task with the input `n`, and remembers it. */
  enqueue(n: number, given?: Partial<NewTask>): Promise<string>
  known(mayEndTwice: boolean): Known
}

export async function openFuzzWorld(redisUrl: string, namespace: string): Promise<FuzzWorld> {
  const queues = [QUEUE, OTHER_QUEUE]
  const enqueueRateOf = () => ({ max: 1_000_000, perMs: 1_000 })
  const world = await openWorld(redisUrl, namespace, { queues, leads: false, enqueueRateOf })
  const fleet = openFleet({ redisUrl, namespace, queues, commandTimeoutMs: 30_000, log: silent })
  await eventually(() => world.broker.ping().then(() => true))
  await eventually(() => fleet.commands(1).then(() => true))
  const faults: string[] = []
  const { held, delayedByPlain, broker } = world
  const [unlocked, expiring, parents] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const activeByKey = new Map<string, number>()
  const turn = { isTaken: false }
  const fuzzed: FuzzWorld = {
    ...world,
    leader: fuzzLeader(world, queues, (fault) => faults.push(fault)),
    fleet,
    ...{ late: [], unlocked, expiring, remembered: new Map(), groups: [], runs: [], last: undefined, faults, turn },
    async enqueue(n, given = {}) {
      const task = modelTask(n, { caller: 'only', maxAttempts: 3, ...given })
      const { id, action } = await broker.enqueue(task)
      fuzzed.last = task
      if (task.expiresAt !== undefined && id === task.id && action !== 'existing') expiring.add(id)
      return id
    },
    known: (mayEndTwice) => ({
      ...{ delayedByPlain, unlocked, expiring, parents, mayEndTwice, turn, activeByKey },
      tokens: new Map(held.map(({ job, token }) => [job.id ?? '', token])),
    }),
    async close() {
      await fleet.close()
      await world.close()
    },
  }
  return fuzzed
}
