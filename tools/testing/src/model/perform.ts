// Performs a program on a broker, and checks that nothing is lost, doubled or against the tables.
import { isFinal } from '@bullpen/contract'
import type { Clock } from '@bullpen/engine/internal'
import type { OpenBackend } from '../conformance/backend.ts'
import { actsOn } from './acts.ts'
import { rule } from './history.ts'
import type { Program } from './program.ts'
import { muster, plainTask, stay } from './tasks.ts'
import { openWorld, type World } from './world.ts'

export interface Time {
  readonly clock: Clock
  pass(ms: number): Promise<void>
  /** Passes time until it is true. Rejects when it never is. */
  until(isTrue: () => boolean | Promise<boolean>, what: string): Promise<void>
}

export async function perform(program: Program, open: OpenBackend, time: Time): Promise<void> {
  const world = await openWorld(program, open, time.clock)
  const { happen, isAway, recover } = actsOn(world)
  try {
    await world.openProcess()
    for (const task of program.tasks) await world.plan(task)
    for (const { afterMs, ...act } of program.acts) {
      await time.pass(afterMs)
      await happen(act)
      if (!isAway()) await world.look()
    }
    recover()
    world.release()
    await allEnd(world, time)
    await noSlotIsLost(world, time)
    world.chronicle.check(await world.look())
    await drainLeavesNothingOpen(world, time)
  } finally {
    recover()
    await world.close()
  }
}

async function allEnd(
  { chronicle, living, look, isDraining, openProcess, processes }: World,
  time: Time,
): Promise<void> {
  if (slots({ living }) === 0) await openProcess()
  await time.until(async () => (await look()).every(({ status }) => isFinal(status)), 'every task ends')
  await time.until(() => !isDraining(), 'every drain ends')
  const alive = processes.filter(({ name }) => !chronicle.isDead(name))
  await time.until(() => alive.every(({ pool }) => pool.busy() === 0), 'every worker is free')
  await time.until(() => alive.every(({ pool }) => pool.stuckHandlers() === 0), 'every handler comes back')
}

/** All of them work at once. */
async function noSlotIsLost({ enqueue, living, roll }: World, time: Time): Promise<void> {
  const many = slots({ living })
  roll.call(many)
  for (let n = 0; n < many; n++) await enqueue(plainTask(muster, time.clock.now()))
  await time.until(roll.isComplete, `all ${many} workers work at once`)
  await time.until(() => living().every(({ pool }) => pool.busy() === 0), 'every worker is free again')
}

/** What runs, what waits and what is scheduled waits after it, or is scheduled; no attempt is used, no worker is left. */
async function drainLeavesNothingOpen(world: World, time: Time): Promise<void> {
  const { backend, chronicle, drain, enqueue, isDraining, living, processes } = world
  const tasks = Array.from({ length: slots(world) + 2 }, (_, n) =>
    plainTask(stay, time.clock.now(), n === 0 ? 3_600_000 : 0),
  )
  for (const task of tasks) await enqueue(task)
  const last = living()
  await time.until(() => last.every(({ pool }) => pool.busy() === pool.size()), 'every worker works')
  for (const process of last) drain(process, 0)
  await time.until(() => !isDraining(), 'the last pools end')
  for (const [n, { id }] of tasks.entries()) {
    const record = await backend.broker.find(id)
    const is = `${record?.status} after ${record?.attemptsMade} attempts`
    rule(is === `${n === 0 ? 'scheduled' : 'waiting'} after 0 attempts`, `after a drain ${id} is ${is}`)
  }
  for (const { pool, name } of last) rule(pool.state() === 'SHUTDOWN', `the pool of ${name} is ${pool.state()}`)
  for (const { pool, name } of processes.filter((process) => !chronicle.isDead(process.name))) {
    const left = pool.slots().filter(({ state }) => state !== 'TERMINATED')
    rule(left.length === 0, `${left.length} workers of ${name} have not ended`)
  }
}

function slots({ living }: Pick<World, 'living'>): number {
  return living().reduce((sum, { pool }) => sum + pool.size(), 0)
}
