// Random programs: tasks, what their handlers do at each start, and what happens from outside meanwhile.
import fc from 'fast-check'

/** `ms`: how long it takes, or lasts until it happens. */
export type Doing =
  | { readonly do: 'return' | 'throw' | 'refuse' | 'panic' | 'return nonsense' | 'enqueue a child' }
  | { readonly do: 'return later' | 'throw later' | 'escape' | 'snooze' | 'rate limit' | 'beat'; readonly ms: number }
  /** Until it is signalled: then it throws the reason, or returns after all. */
  | { readonly do: 'leave when told' | 'return when told' }
  /** Until the program is over. */
  | { readonly do: 'hang' }

export interface TaskPlan {
  readonly kind: 'short' | 'long' | 'fragile'
  readonly delayMs: number
  readonly timeoutMs: number
  readonly heartbeatMs: number | undefined
  readonly queueMs: number | undefined
  readonly totalMs: number | undefined
  readonly maxAttempts: number
  /** At the first start, the second, and so on; after these it returns. */
  readonly doings: readonly Doing[]
}

/** `task`, `pool`: counted round. */
export type Act =
  | { readonly act: 'wait' | 'join' | 'break feeds' | 'outage' | 'recover' }
  | { readonly act: 'cancel' | 'lose lock'; readonly task: number }
  | { readonly act: 'stop worker'; readonly pool: number; readonly worker: number; readonly how: 'wait' | 'hard' }
  /** Another pool takes its place. */
  | { readonly act: 'drain'; readonly pool: number; readonly drainMs: number }
  | { readonly act: 'kill' | 'close parent'; readonly pool: number }

export interface Program {
  readonly concurrency: number
  readonly tasks: readonly TaskPlan[]
  /** Each some ms after the one before. */
  readonly acts: readonly (Act & { readonly afterMs: number })[]
}

const ms = fc.integer({ min: 1, max: 80 })

const doing: fc.Arbitrary<Doing> = fc.oneof(
  fc.record({
    do: fc.constantFrom('return', 'throw', 'refuse', 'panic', 'return nonsense', 'enqueue a child'),
  }) satisfies fc.Arbitrary<Doing>,
  fc.record({ do: fc.constantFrom('return later', 'throw later', 'escape', 'snooze', 'rate limit', 'beat'), ms }),
  fc.record({ do: fc.constantFrom('leave when told', 'return when told', 'hang') }),
)

const rarely = (arbitrary: fc.Arbitrary<number>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const plan: fc.Arbitrary<TaskPlan> = fc.record({
  kind: fc.constantFrom('short', 'long', 'long', 'fragile'),
  delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 })),
  timeoutMs: fc.integer({ min: 10, max: 50 }),
  heartbeatMs: rarely(fc.integer({ min: 5, max: 9 })),
  queueMs: rarely(fc.integer({ min: 10, max: 40 })),
  totalMs: rarely(fc.integer({ min: 60, max: 200 })),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  doings: fc.array(doing, { maxLength: 4 }),
})

const index = fc.nat({ max: 20 })

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('wait', 'join', 'break feeds', 'outage', 'recover') }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('cancel', 'cancel', 'lose lock'), task: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('stop worker' as const),
      pool: index,
      worker: fc.integer({ min: 1, max: 4 }),
      how: fc.constantFrom('wait', 'hard'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant('drain' as const), pool: index, drainMs: fc.integer({ min: 0, max: 30 }) }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('kill', 'close parent'), pool: index }) },
)

/** A long one lets a drain come to its end, and what was lost be found. */
const pause = fc.oneof({ weight: 8, arbitrary: fc.nat({ max: 25 }) }, { weight: 1, arbitrary: fc.constant(400) })

export const program: fc.Arbitrary<Program> = fc.record({
  concurrency: fc.integer({ min: 1, max: 3 }),
  tasks: fc.array(plan, { minLength: 1, maxLength: 12 }),
  acts: fc.array(
    fc.tuple(act, pause).map(([each, afterMs]) => ({ ...each, afterMs })),
    { maxLength: 10 },
  ),
})
