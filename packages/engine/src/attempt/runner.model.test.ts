// Runs random attempts one after another on one slot, and compares them with the reference model.
import { rateLimited, TaskError } from '@bullpen/contract'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { GRACE_MS, soloist, tasks } from '../pool/pool.fixture.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import {
  type EndOf,
  type ExpectedEnd,
  endByInterruption,
  endByLeaving,
  INTERRUPTIONS,
  type InterruptedBy,
  LEAVINGS,
  type Leaving,
} from './reference.fixture.ts'

type Sign = 'heartbeat' | 'checkpoint' | 'progress' | 'enqueue'
type Outside = Exclude<InterruptedBy, 'run_timeout' | 'heartbeat_timeout' | 'total_timeout' | 'escaped_error'>
type Action =
  | { readonly do: 'leave'; readonly how: Leaving }
  | { readonly do: 'escape' }
  | { readonly do: 'interrupt'; readonly by: Outside }
  | { readonly do: 'live'; readonly how: Sign }

/** Something that happens to an attempt, in ms after its beginning. */
type Timed = Action & { readonly at: number }

interface Life {
  /** `fragile`: long, and dead when it is interrupted by its slot's end. */
  readonly kind: 'short' | 'long' | 'fragile'
  readonly attempt: number
  readonly timeoutMs: number | 'none'
  readonly heartbeatMs: number | 'none'
  readonly totalMs: number | 'none'
  readonly queueMs: number | 'none'
  /** From the time when the task was ready to the start of its attempt. */
  readonly waitedMs: number
  readonly snoozeMs: number
  readonly actions: readonly Timed[]
}

interface Expected extends ExpectedEnd {
  readonly started: boolean
  readonly endsAt: number
  /** The number of late results that are reported. */
  readonly late: number
  /** Progress that is stored and children that are enqueued while the attempt lasts. */
  readonly signs: number
  readonly children: number
}

const MAX_ATTEMPTS = 2
/** The time by which every handler has returned. */
const AT_LAST = 3_000

const orNone = (limit: number | 'none'): number => (limit === 'none' ? Number.POSITIVE_INFINITY : limit)

/** Returns how a life must end. The first interruption decides or, without one, the way in which the handler ends. */
function expectation(life: Life, nth: number): Expected {
  const { kind, attempt, waitedMs, snoozeMs } = life
  const long = kind !== 'short'
  const deadlineAt = long ? orNone(life.totalMs) - waitedMs : Number.POSITIVE_INFINITY
  const about = (endsAt: number): EndOf => ({
    attempt,
    maxAttempts: MAX_ATTEMPTS,
    endsAt,
    deadlineAt,
    fragile: kind === 'fragile',
    snoozeMs,
  })
  const unstarted = { started: false, endsAt: 0, late: 0, signs: 0, children: 0 }
  if (long && waitedMs >= orNone(life.queueMs)) {
    return { ...unstarted, state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', verdict: 'expired' }
  }
  if (deadlineAt <= 0) {
    const end = endByInterruption('total_timeout', about(0))
    return { ...unstarted, ...end, verdict: nth === 0 ? 'expired' : end.verdict }
  }

  let lastSign = 0
  let signs = 0
  let children = 0
  let escapedFirst = false
  let interrupted: { by: InterruptedBy; at: number } | undefined
  const limit = (): { by: InterruptedBy; at: number } => {
    const limits = [
      { by: 'run_timeout' as const, at: orNone(life.timeoutMs) },
      { by: 'heartbeat_timeout' as const, at: lastSign + orNone(life.heartbeatMs) },
      { by: 'total_timeout' as const, at: deadlineAt },
    ]
    return limits.reduce((first, other) => (other.at < first.at ? other : first))
  }
  for (const action of life.actions) {
    if (long && interrupted === undefined && limit().at <= action.at) interrupted = limit()
    if (interrupted !== undefined && interrupted.at + GRACE_MS <= action.at) break
    const interrupt = (by: InterruptedBy): void => {
      if (long) interrupted ??= { by, at: action.at }
    }
    const left = (how: Leaving | undefined): Expected => {
      const base = { started: true, endsAt: action.at, signs, children }
      if (interrupted === undefined && how !== undefined) {
        const end = escapedFirst
          ? endByInterruption('escaped_error', about(action.at))
          : endByLeaving(how, about(action.at))
        return { ...base, ...end, late: 0 }
      }
      const by = interrupted?.by ?? 'escaped_error'
      const counts = how === 'valid output' && INTERRUPTIONS[by].outputCounts
      const end = counts ? endByLeaving('valid output', about(action.at)) : endByInterruption(by, about(action.at))
      return { ...base, ...end, late: how === 'valid output' && !counts ? 1 : 0 }
    }
    if (action.do === 'leave') return left(action.how)
    if (action.do === 'escape') {
      if (long) interrupt('escaped_error')
      else escapedFirst = true
    } else if (action.do === 'interrupt') interrupt(action.by)
    else if (action.how === 'checkpoint' && interrupted !== undefined) return left(undefined)
    else if (action.how === 'enqueue') children++
    else {
      lastSign = action.at
      if (action.how === 'progress') signs++
    }
  }
  if (interrupted === undefined) throw new Error('every life ends')
  const endsAt = interrupted.at + GRACE_MS
  return { ...endByInterruption(interrupted.by, about(endsAt)), started: true, endsAt, late: 1, signs, children }
}

const leaving = fc.constantFrom(...(Object.keys(LEAVINGS) as Leaving[]))
const outside = fc.constantFrom<Outside[]>(
  'cancelled',
  'queue_shutdown',
  'slot_stopped',
  'drain',
  'parent_closed',
  'lock_lost',
)
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 2, arbitrary: leaving.map((how) => ({ do: 'leave' as const, how })) },
  { weight: 2, arbitrary: outside.map((by) => ({ do: 'interrupt' as const, by })) },
  { weight: 1, arbitrary: fc.constant({ do: 'escape' as const }) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom<Sign[]>('heartbeat', 'checkpoint', 'progress', 'enqueue')
      .map((how) => ({ do: 'live' as const, how })),
  },
)
const ms = (max: number) => fc.oneof(fc.constant('none' as const), fc.integer({ min: 1, max }))
const life: fc.Arbitrary<Life> = fc
  .record({
    kind: fc.constantFrom('long', 'long', 'fragile', 'short'),
    attempt: fc.integer({ min: 1, max: MAX_ATTEMPTS }),
    timeoutMs: ms(300),
    heartbeatMs: ms(150),
    totalMs: ms(2_000),
    queueMs: ms(400),
    waitedMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 })),
    snoozeMs: fc.integer({ min: 1, max: 2_000 }),
    actions: fc.array(
      fc.tuple(action, fc.integer({ min: 0, max: 300 })).map(([what, at]) => ({ ...what, at })),
      { maxLength: 6 },
    ),
  })
  .map((drawn) => ({
    ...drawn,
    actions: [...drawn.actions.toSorted((a, b) => a.at - b.at), { do: 'leave', how: 'valid output', at: AT_LAST }],
  }))

const OUTPUT = { 'valid output': { n: 1 }, 'invalid output': { n: 'seven' as never } } as const

/** Runs all lives on one slot, one after the other. The late actions of a life happen during later ones. */
async function live(lives: readonly Life[]): Promise<void> {
  const solo = soloist()
  const { clock, calls, slot, stuckHandlers, named, progress, enqueued } = solo
  const expected = lives.map(expectation)
  const begins = expected.map((_, i) => expected.slice(0, i).reduce((sum, { endsAt }) => sum + endsAt + 1, 0))
  const zero = clock.monotonic()
  const until = async (at: number): Promise<void> => clock.advance(zero + at - clock.monotonic())

  const ends: (AttemptResult | undefined)[] = lives.map(() => undefined)
  const timeline: { readonly at: number; readonly happen: () => Promise<void> }[] = []
  lives.forEach((life, i) => {
    const { kind, attempt, timeoutMs, heartbeatMs, totalMs, queueMs, waitedMs, snoozeMs } = life
    const [begin = 0, expectedEnd] = [begins[i], expected[i]]
    let call: (typeof calls)[number] | undefined
    let interruption: typeof slot.interruption
    timeline.push({
      at: begin,
      happen: async () => {
        const limits = { timeoutMs, heartbeatMs, totalMs, queueMs }
        const since = clock.now() - waitedMs
        const given = { attempt, maxAttempts: MAX_ATTEMPTS, fencingToken: i + 1, enqueuedAt: since, readyAt: since }
        const before = calls.length
        const result = solo.run(`test.${kind}`, limits, given)
        interruption = slot.interruption
        call = calls.length > before ? calls[before] : undefined
        expect(call !== undefined).toBe(expectedEnd?.started)
        void result.then((attemptResult) => {
          ends[i] = attemptResult
        })
      },
    })
    for (const action of life.actions) {
      timeline.push({ at: begin + action.at, happen: async () => happens(action, call, interruption, snoozeMs) })
    }
  })
  for (const { at, happen } of timeline.toSorted((a, b) => a.at - b.at)) {
    await until(at)
    await happen()
    await clock.advance(0)
  }
  expect(
    ends.map((attemptResult) => {
      const { state, reason, startedAt, endedAt } = attemptResult?.record ?? { startedAt: 0, endedAt: 0 }
      return { state, reason, verdict: attemptResult?.verdict.kind, endsAt: endedAt - startedAt }
    }),
  ).toEqual(expected.map(({ state, reason, verdict, endsAt }) => ({ state, reason, verdict, endsAt })))
  const total = (count: (end: Expected) => number): number => expected.reduce((sum, end) => sum + count(end), 0)
  expect(named('attempt.started')).toHaveLength(lives.length)
  expect([...named('attempt.ended'), ...named('attempt.commit_refused')]).toHaveLength(lives.length)
  expect(named('attempt.late')).toHaveLength(total(({ late }) => late))
  expect(progress).toHaveLength(total(({ signs }) => signs))
  expect(enqueued).toHaveLength(total(({ children }) => children))
  expect([stuckHandlers.size, clock.pending(), slot.interruption]).toEqual([0, 0, undefined])
}

let keys = 0

async function happens(
  action: Action,
  call: ReturnType<typeof soloist>['calls'][number] | undefined,
  interruption: ReturnType<typeof soloist>['slot']['interruption'],
  snoozeMs: number,
): Promise<void> {
  if (call === undefined) return
  const { context } = call
  if (action.do === 'escape') call.escape(new Error('escaped'))
  else if (action.do === 'interrupt') {
    if (action.by === 'cancelled' || action.by === 'queue_shutdown' || action.by === 'slot_stopped')
      interruption?.stop({ reason: action.by })
    else interruption?.close(action.by)
  } else if (action.do === 'live') {
    if (action.how === 'heartbeat') context.heartbeat()
    else if (action.how === 'progress') await context.progress(0.5)
    else if (action.how === 'enqueue') await context.enqueue(tasks.child, {}, { childKey: `${keys++}` }).catch(() => {})
    else {
      try {
        context.checkpoint()
      } catch (reason) {
        call.fail(reason)
      }
    }
  } else if (action.how === 'snoozes') call.snooze(`${snoozeMs}ms`)
  else if (action.how === 'valid output' || action.how === 'invalid output') call.finish(OUTPUT[action.how])
  else if (action.how === 'is rate limited') call.fail(rateLimited(`${snoozeMs}ms`))
  else if (action.how === 'throws an undeclared error') call.fail(new Error('panic'))
  else call.fail(new TaskError('failed', '', { retryable: action.how === 'declares a retryable failure' }))
}

it('an attempt ends once, by its first interruption or else its handler, and a late handler changes nothing', async () => {
  await fc.assert(fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 3 }), live), {
    numRuns: amount({ small: 400, full: 15_000 }),
  })
})
