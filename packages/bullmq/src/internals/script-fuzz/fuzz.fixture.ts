// Runs random programs of all operations, checks what must hold after each step, and makes a program that fails as short as possible.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { ReplyError } from 'ioredis'
import { membersOf } from '../index-model/full-scan.fixture.ts'
import { programsOf, type Step } from '../turns/random-steps.fixture.ts'
import { finish } from './finish.fixture.ts'
import { type FuzzWorld, openFuzzWorld } from './fuzz-world.fixture.ts'
import { momentViolations } from './invariants.fixture.ts'
import { type Moment, momentOf } from './moment.fixture.ts'
import { FUZZ_OPERATIONS } from './operations.fixture.ts'
import { rareViolations } from './rare-checks.fixture.ts'
import type { SentScripts } from './sent-scripts.fixture.ts'

/** How many steps a program takes before everything has to end, and another program begins in a new namespace. */
const PROGRAM_STEPS = 5_000
const STEPS_PER_RARE_CHECK = 250
/** Operations that add tasks do nothing while there are this many that have not ended. */
const MAX_UNFINISHED = 40
/** While there are more tasks than this, the ones that have ended are removed. */
const MAX_TASKS = 90

const ADDS = /^(enqueue|add|replace|postpone a unique|extend|keep the last|schedule|wait for children)/
/** Operations in which a task may end, return and end again. */
const ENDS_TWICE = /leader|request/

/** Returns programs of together this many steps, which are always the same for a seed. */
export function programsFor(seed: number, steps: number): readonly (readonly Step[])[] {
  const length = Math.min(steps, PROGRAM_STEPS)
  const weighted = Object.fromEntries(
    Object.entries(FUZZ_OPERATIONS).map(([name, [weight, operation]]) => [name, [10 * weight, operation] as const]),
  )
  // With a bias, most numbers would be near 0 or 9,999.
  const programs = fc.noBias(programsOf(weighted, { small: length, full: length }))
  return fc.sample(programs, { seed, numRuns: Math.ceil(steps / length) })
}

/** Replaces every third step of a program, so that each operation is performed about equally often. */
export function withEveryOperation(program: readonly Step[]): readonly Step[] {
  const names = Object.keys(FUZZ_OPERATIONS)
  return program.map((step, i) =>
    i % 3 === 2 ? { ...step, name: names[Math.floor(i / 3) % names.length] ?? step.name } : step,
  )
}

export interface Failure {
  /** The number of the step, from 0. After the last step, everything ends. */
  readonly at: number
  readonly found: readonly string[]
}

/** Runs a program in a new namespace. Returns what is wrong after which step, or undefined. */
export async function runProgram(
  redisUrl: string,
  program: readonly Step[],
  sent: Pick<SentScripts, 'begin'>,
): Promise<Failure | undefined> {
  const world = await openFuzzWorld(redisUrl, `t-${randomUUID().slice(0, 12)}`)
  const { redis, keys, unlocked, expiring, faults } = world
  let before: Moment | undefined
  const check = async (mayEndTwice: boolean): Promise<readonly string[]> => {
    const moment = await momentOf(redis, keys, before?.rest.last ?? '')
    const active = new Set(membersOf(moment.scan, 'active').map(([id]) => id))
    for (const id of unlocked) if (!active.has(id)) unlocked.delete(id)
    for (const id of await refusedIn(world, moment)) unlocked.add(id)
    // A task that has ended once does not expire again.
    for (const id of expiring) if (moment.scan.jobs[id]?.finishedOn !== false) expiring.delete(id)
    const found = [...faults.splice(0), ...momentViolations(before, moment, world.known(mayEndTwice))]
    before = moment
    return found
  }
  try {
    for (const [at, step] of program.entries()) {
      sent.begin(step.name, isTwice(step))
      const fault = await perform(world, step, before)
      const found = [...(fault === undefined ? [] : [fault]), ...(await check(ENDS_TWICE.test(step.name)))]
      if (at % STEPS_PER_RARE_CHECK === STEPS_PER_RARE_CHECK - 1 && before !== undefined) {
        sent.begin('checks', false)
        found.push(...(await rareViolations(world, () => momentOf(redis, keys, ''))))
      }
      if (found.length > 0) return { at, found }
    }
    sent.begin('finish', false)
    const found = await finish(world, () => check(true))
    return found.length > 0 ? { at: program.length, found } : undefined
  } finally {
    sent.begin('close', false)
    await world.close()
  }
}

/** Returns the attempts whose ends Redis has refused because their children have not ended, so that they keep their locks for a while. */
async function refusedIn({ redis, keys, held }: FuzzWorld, { rest }: Moment): Promise<readonly string[]> {
  const ours = new Set(held.map(({ job }) => job.id))
  const left = Object.keys(rest.locks).filter((id) => !ours.has(id))
  const hasChildren = (id: string) => redis.exists(keys.dependencies(id), keys.unsuccessful(id))
  const counts = await Promise.all(left.map(hasChildren))
  return left.filter((_, i) => counts[i] !== 0)
}

/** Each script of such a step is sent twice. */
const isTwice = ({ n }: Step): boolean => Math.floor(n / 625) === 3

/** Errors of this test, or of a script. Others are refusals, which must change nothing. */
const FAULTS: readonly string[] = ['AssertionError', 'TypeError', 'ReferenceError', 'RangeError', 'SyntaxError']

/** Returns what has gone wrong. */
async function perform(
  world: FuzzWorld,
  { name, pick, n }: Step,
  before: Moment | undefined,
): Promise<string | undefined> {
  const tasks = Object.values(before?.scan.jobs ?? {})
  if (ADDS.test(name) && tasks.filter(({ finishedOn }) => finishedOn === false).length >= MAX_UNFINISHED)
    return undefined
  try {
    await FUZZ_OPERATIONS[name]?.[1](world, pick, n)
    if (tasks.length > MAX_TASKS)
      for (const state of ['completed', 'failed'] as const) await world.queue.clean(0, 30, state)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    if (error instanceof ReplyError || FAULTS.includes(error.name)) return error.stack ?? error.message
  }
  return undefined
}

/** Drops steps as long as the program still fails, for at most this long. Returns the shortest program that fails. */
export async function shortened(
  program: readonly Step[],
  fails: (program: readonly Step[]) => Promise<boolean>,
  withinMs: number,
): Promise<readonly Step[]> {
  const until = performance.now() + withinMs
  let shortest = program
  for (let size = Math.ceil(program.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = shortest.length - size; from > -size; from -= size) {
      if (performance.now() > until) return shortest
      const rest = shortest.toSpliced(Math.max(0, from), size + Math.min(0, from))
      if (await fails(rest)) shortest = rest
    }
  }
  return shortest
}
