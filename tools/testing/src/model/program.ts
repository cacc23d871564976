// Generates random programs: tasks, what their handlers do in each attempt, and what disturbs the tasks while they run.
import type { PerConcurrencyKey } from '@bullpen/contract'
import fc from 'fast-check'

/** What a handler does in one attempt. `ms` is how long it takes, or the time until it happens. */
export type Behaviour =
  | { readonly do: 'return' | 'throw' | 'refuse' | 'panic' | 'return nonsense' | 'enqueue a child' }
  | {
      readonly do:
        | 'return later'
        | 'throw later'
        | 'escape'
        | 'snooze'
        | 'rate limit'
        | 'throttle its key'
        | 'heartbeat'
      readonly ms: number
    }
  /** Runs until it is signalled, then throws the reason or returns its output. */
  | { readonly do: 'throw on signal' | 'return on signal' }
  /** Runs until the program ends. */
  | { readonly do: 'hang' }

export interface TaskPlan {
  /** The task's concurrency key. The keys differ in their weights. */
  readonly key: keyof typeof WEIGHTS | undefined
  readonly kind: 'short' | 'long' | 'fragile'
  readonly delayMs: number
  readonly timeoutMs: number
  readonly heartbeatMs: number | undefined
  readonly queueMs: number | undefined
  readonly totalMs: number | undefined
  readonly maxAttempts: number
  /** The behaviour in each attempt. Later attempts return. */
  readonly behaviours: readonly Behaviour[]
}

/** `task` and `pool` are indexes that wrap around. */
export type Disturbance =
  | { readonly kind: 'wait' | 'start worker' | 'fail consumers' | 'outage' | 'recover' }
  | { readonly kind: 'cancel' | 'lose lock'; readonly task: number }
  | { readonly kind: 'stop slot'; readonly pool: number; readonly slot: number; readonly how: 'wait' | 'hard' }
  /** Drains a pool. A new worker replaces the drained one. */
  | { readonly kind: 'drain'; readonly pool: number; readonly drainMs: number }
  | { readonly kind: 'kill' | 'close parent'; readonly pool: number }

export interface Program {
  readonly concurrency: number
  readonly keyLimits: PerConcurrencyKey
  readonly tasks: readonly TaskPlan[]
  /** `afterMs` is the time since the previous disturbance. */
  readonly disturbances: readonly (Disturbance & { readonly afterMs: number })[]
}

/** The weights of the concurrency keys. */
export const WEIGHTS = { a: 1, b: 3, c: 0.5 } as const

const ms = fc.integer({ min: 1, max: 80 })

const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
  fc.record({
    do: fc.constantFrom('return', 'throw', 'refuse', 'panic', 'return nonsense', 'enqueue a child'),
  }) satisfies fc.Arbitrary<Behaviour>,
  fc.record({
    do: fc.constantFrom(
      'return later',
      'throw later',
      'escape',
      'snooze',
      'rate limit',
      'throttle its key',
      'heartbeat',
    ),
    ms,
  }),
  fc.record({ do: fc.constantFrom('throw on signal', 'return on signal', 'hang') }),
)

const rarely = (arbitrary: fc.Arbitrary<number>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const plan: fc.Arbitrary<TaskPlan> = fc.record({
  key: fc.constantFrom(undefined, undefined, 'a', 'b', 'c'),
  kind: fc.constantFrom('short', 'long', 'long', 'fragile'),
  delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 })),
  timeoutMs: fc.integer({ min: 10, max: 50 }),
  heartbeatMs: rarely(fc.integer({ min: 5, max: 9 })),
  queueMs: rarely(fc.integer({ min: 10, max: 40 })),
  totalMs: rarely(fc.integer({ min: 60, max: 200 })),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  behaviours: fc.array(behaviour, { maxLength: 4 }),
})

const index = fc.nat({ max: 20 })

const disturbance: fc.Arbitrary<Disturbance> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('wait', 'start worker', 'fail consumers', 'outage', 'recover') }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'cancel', 'lose lock'), task: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('stop slot' as const),
      pool: index,
      slot: fc.integer({ min: 1, max: 4 }),
      how: fc.constantFrom('wait', 'hard'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('drain' as const),
      pool: index,
      drainMs: fc.integer({ min: 0, max: 30 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('kill', 'close parent'), pool: index }) },
)

/** A long pause gives a drain time to end, and lost tasks time to be recovered. */
const pause = fc.oneof({ weight: 8, arbitrary: fc.nat({ max: 25 }) }, { weight: 1, arbitrary: fc.constant(400) })

const concurrency = fc.integer({ min: 1, max: 3 })

/** Some keys also have a rate, which is high enough for all tasks to end. */
const keyLimits: fc.Arbitrary<PerConcurrencyKey> = fc.record({
  concurrency,
  keys: fc.record({
    b: fc.record({ concurrency }),
    c: fc.record({
      rate: fc.record({ max: fc.constant(1), perMs: fc.integer({ min: 1, max: 20 }), burst: concurrency }),
    }),
  }),
})

export const program: fc.Arbitrary<Program> = fc.record({
  concurrency,
  keyLimits,
  tasks: fc.array(plan, { minLength: 1, maxLength: 12 }),
  disturbances: fc.array(
    fc.tuple(disturbance, pause).map(([each, afterMs]) => ({ ...each, afterMs })),
    { maxLength: 10 },
  ),
})
