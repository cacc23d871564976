// The fuzz's operations on attempts: fetches and ends that several workers make at once, lost workers, and what handlers store meanwhile.
import type { TaskId } from '@bullpen/contract'
import { DEFAULT_BREAKER } from '@bullpen/contract/internal'
import { type AttemptResult, followUpLines, type Verdict } from '@bullpen/engine/internal'
import { type Job, WaitingChildrenError } from 'bullmq'
import { expect } from 'vitest'
import { eventSender } from '../../../events/event-sender.ts'
import { renewLocks } from '../../../locks/renewal.ts'
import { lockOwner, takeLock, unlockTasks } from '../../../locks/stored-lock.fixture.ts'
import { runnerOn, runScript } from '../../../scripts/script.ts'
import { noteSurvivalScript, startAloneScript, unthrottleScript } from '../../../store/scripts.ts'
import { OPERATIONS } from '../../index-model/operations.fixture.ts'
import type { ModelVerdict } from '../../index-model/world.fixture.ts'
import { THROTTLE_MARK } from '../../throttle.ts'
import { idsInLanes } from '../../turns/lane-scan.fixture.ts'
import { stepsOf } from '../../worker/job-scripts.ts'
import type { FuzzWorld } from '../fuzz-world.fixture.ts'
import { at, type FuzzOperation, type FuzzOperations } from '../operation.fixture.ts'
import { OWN_FOLLOW_UPS } from './enqueues.fixture.ts'

const HOUR = 3_600_000
const LOCK_MS = 30_000
/** How long another worker keeps a lock that it has taken, in ms. */
const TAKEN_MS = 300
/** If a task has no concurrency key, its queue is throttled. In ms. */
const THROTTLE_MS = 200

const VERDICTS: readonly ModelVerdict[] = [
  { kind: 'completed', output: { n: 1 } },
  { kind: 'completed', output: { n: 2 } },
  { kind: 'completed', output: { n: 3 } },
  { kind: 'retrying', delayMs: HOUR },
  { kind: 'retrying', delayMs: 0 },
  { kind: 'dead' },
  { kind: 'cancelled' },
  { kind: 'expired' },
  { kind: 'snoozed', delayMs: HOUR },
  { kind: 'requeued', throttleMs: undefined },
  { kind: 'requeued', throttleMs: THROTTLE_MS, throttled: 'concurrencyKey' },
  'released',
  'postponed',
]

const verdictAt = (n: number): ModelVerdict => at(VERDICTS, n) ?? 'released'

/** A throttle may follow a start of the same moment. */
function besideOthers(n: number): ModelVerdict {
  const verdict = verdictAt(n)
  return typeof verdict === 'object' && 'throttled' in verdict ? 'released' : verdict
}

const [FOLLOW_UP_LINE = ''] = followUpLines(OWN_FOLLOW_UPS).split('\n')
const SURVIVALS = [undefined, undefined, 'lived', 'died'] as const

/** What an attempt may show besides its verdict. */
function shownAt(n: number, verdict: ModelVerdict): Partial<AttemptResult> {
  const isCompleted = typeof verdict === 'object' && verdict.kind === 'completed'
  const survival = at(SURVIVALS, Math.floor(n / 2))
  return {
    ...(n % 3 === 0 && { calls: [{ service: 'smtp', failed: n % 2 === 0, slow: false, settings: DEFAULT_BREAKER }] }),
    ...(survival !== undefined && { survival }),
    ...(isCompleted && n % 7 === 0 && { followUps: FOLLOW_UP_LINE }),
  }
}

/** A plain processor completes, fails, or is retried. */
const plain = (n: number) => async (): Promise<string> => {
  if (n % 3 === 0) throw new Error('no')
  return 'done'
}

/** Only a task that has lost a worker before is postponed. */
const possible = (verdict: ModelVerdict, { attemptsStarted }: Job): ModelVerdict =>
  verdict === 'postponed' && attemptsStarted < 2 ? 'released' : verdict

const end = ({ end: endHeld }: FuzzWorld, pick: number, n: number, verdict = verdictAt(n)): Promise<boolean> =>
  endHeld(pick, (job) => possible(verdict, job), plain(n), undefined, shownAt(n, verdict))

const endAs =
  (verdict: Verdict | 'postponed'): FuzzOperation =>
  (world, pick, n) =>
    end(world, pick, n, verdict)

/** Takes away the lock of a job, whose worker does not notice. */
async function loseWorker({ redis, keys, held, late, unlocked }: FuzzWorld, pick: number): Promise<boolean> {
  const [lost] = held.splice(pick % Math.max(1, held.length), 1)
  if (lost === undefined) return false
  const { id = '' } = lost.job
  unlocked.add(id)
  if ((await lockOwner(redis, keys, id)) === lost.token) await unlockTasks(redis, keys, id)
  late.push(lost)
  if (late.length > 5) late.shift()
  return true
}

/** Another worker has the lock, so that Redis refuses the end. */
const refuse: FuzzOperation = async ({ redis, keys, end: endHeld, unlocked }, pick, n) => {
  const verdict = verdictAt(n)
  return endHeld(
    pick,
    (job) => possible(verdict, job),
    plain(n),
    async (id) => {
      unlocked.add(id)
      await takeLock(redis, keys, id, TAKEN_MS)
    },
  )
}

/** A worker notices that it has lost the lock. */
const giveUp: FuzzOperation = ({ redis, keys, end: endHeld, unlocked }, pick, n) =>
  endHeld(
    pick,
    () => ({ kind: 'lost' }),
    plain(n),
    (id) => {
      unlocked.add(id)
      return unlockTasks(redis, keys, id)
    },
  )

/** What a handler does while a worker holds its job. */
const onHeld =
  (act: (world: FuzzWorld, job: Job, token: string, n: number) => unknown): FuzzOperation =>
  (world, pick, n) => {
    const found = at(world.held, pick)
    return found !== undefined && act(world, found.job, found.token, n)
  }

const [, TEMPLATE = '{}'] = /(\{.*)/.exec(FOLLOW_UP_LINE) ?? []
const register = (kind: 'compensation' | 'failure' | 'end') =>
  onHeld((_, job, token, n) => stepsOf(job, token, undefined).register(kind, `model.task:${n % 3}`, TEMPLATE))

/** An idle worker takes the marker before it looks. If nothing may start at the moment, it knows when to look again. */
const fetchIdle: FuzzOperation = async (world) => {
  const hadMarker = await world.redis.zrem(world.keys.marker, '0')
  if (hadMarker === 0) return false
  world.turn.isTaken = !(await world.fetch('bullpen'))
  return true
}

/** Only a plain processor waits for children. */
const waitForChildren: FuzzOperation = async ({ held, queue, fetch, end: endHeld }, _, n) => {
  const plainly = held.findIndex(({ worker }) => worker.opts.name === undefined)
  if (plainly === -1 && !(await fetch('plain'))) return false
  return endHeld(
    plainly === -1 ? held.length - 1 : plainly,
    () => ({ kind: 'completed', output: { n } }),
    async (job, token) => {
      const parent = { id: job.id ?? '', queue: job.queueQualifiedName }
      await queue.add('child', {}, { parent, delay: n % 2 === 0 ? HOUR : 0 })
      if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError()
      return 'done'
    },
  )
}

const existing = (name: string): FuzzOperation => OPERATIONS[name] ?? expect.fail(`there is no operation '${name}'`)

export const ATTEMPTS: FuzzOperations = {
  'fetch like an idle worker': [60, fetchIdle],
  'fetch one of some tasks': [
    3,
    async ({ redis, keys, fetchOneOf }, pick, n) => {
      const ids = (await idsInLanes(redis, keys)) as TaskId[]
      return fetchOneOf(ids.filter((_, i) => (i + pick) % (1 + (n % 4)) === 0))
    },
  ],
  'fetch several tasks at once': [20, ({ fetch }) => Promise.all([0, 1, 2].map(() => fetch('bullpen')))],
  'end an attempt in any way': [60, end],
  'end several attempts at once': [
    20,
    (world, pick, n) => Promise.all([0, 1, 2].map((i) => end(world, pick + i, n + i, besideOthers(n + i)))),
  ],
  'end and fetch at once': [
    10,
    (world, pick, n) =>
      Promise.all([
        end(world, pick, n, besideOthers(n)),
        world.fetch('bullpen'),
        end(world, pick + 1, n + 2, besideOthers(n + 2)),
      ]),
  ],
  'complete an attempt': [40, existing('complete a task')],
  'retry a task at once': [4, endAs({ kind: 'retrying', delayMs: 0 })],
  'postpone a task': [3, endAs('postponed')],
  'throttle a concurrency key': [2, endAs({ kind: 'requeued', throttleMs: THROTTLE_MS, throttled: 'concurrencyKey' })],
  'end an attempt whose lock is taken': [3, refuse],
  'lose a worker': [5, loseWorker],
  'leave a task to its new owner': [2, giveUp],
  'a lost worker ends its attempt': [
    5,
    async ({ late, endLate, settled }, pick, n) => {
      const [found] = late.splice(pick % Math.max(1, late.length), 1)
      if (found === undefined) return false
      const verdict = verdictAt(n)
      const before = settled.length
      await endLate(found, (job) => possible(verdict, job), plain(n))
      return expect(settled.slice(before)).not.toContain('confirmed')
    },
  ],
  'note that a lost worker lives': [
    2,
    async ({ late, redis, keys }, pick) => {
      const job = at(late, pick)?.job
      if (job === undefined) return false
      return runScript(
        redis,
        noteSurvivalScript,
        { job: keys.job(job.id ?? '') },
        { fencingToken: job.attemptsStarted },
      )
    },
  ],
  'look for lost tasks': [6, ({ checkForLost }) => checkForLost()],
  'renew the locks': [
    5,
    ({ redis, keys, held, unlocked }) => {
      const locks = held.map(({ job, token }) => ({ id: job.id ?? '', token })).filter(({ id }) => !unlocked.has(id))
      return locks.length > 0 && renewLocks(runnerOn(redis), { base: keys.base, lockMs: LOCK_MS }, locks)
    },
  ],
  'keep a step': [3, onHeld((_, job, token, n) => stepsOf(job, token, undefined).keep(`step ${n % 3}`, `${n}`))],
  'register a compensation': [3, register('compensation')],
  'register a follow-up of a failure': [2, register('failure')],
  'register a follow-up of any end': [2, register('end')],
  'note that a task runs alone': [
    2,
    onHeld(({ redis, keys }, { id = '', attemptsStarted }, token) =>
      runScript(redis, startAloneScript, { job: keys.job(id) }, { token, fencingToken: attemptsStarted }),
    ),
  ],
  'report events': [
    3,
    onHeld(({ redis, keys }, { id = '' }, token, n) =>
      eventSender(redis, keys)([{ id, token, events: `1000\n{"type":"log","n":${n}}\n{"type":"progress","n":${n}}` }]),
    ),
  ],
  'wait for children': [3, waitForChildren],
  'end a throttle': [2, ({ redis, keys }) => runScript(redis, unthrottleScript, keys, { mark: THROTTLE_MARK })],
}
