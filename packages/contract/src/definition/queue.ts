// Defines queues that need more than a name.
import { BullpenError } from '../errors/errors.ts'
import { QUEUE_NAME } from '../task/task-id.ts'
import { type Fairness, type FairnessOptions, parseFairness } from './fairness.ts'
import { DEFAULT_KEPT_EVENTS, type EventOptions, type KeptEvents, keptEvents } from './kept-events.ts'
import { type BreakerOptions, type BreakersOf, parseBreakers } from './limits/breakers.ts'
import { type PerConcurrencyKey, perConcurrencyKey } from './limits/concurrency-key-limits.ts'
import { type Permits, queuePermits } from './limits/permits.ts'
import { type QueueLimitOptions, type QueueLimits, queueLimits } from './limits/queue-limits.ts'
import { checkedWhenFull, type WhenFull } from './limits/when-full.ts'
import { suggestion } from './nearest.ts'
import { type QueueRetention, queueRetention, type RetentionOptions } from './retention.ts'
import { parseSlo, type Slo, type SloOptions } from './slo.ts'
import { type Duration, milliseconds } from './units/duration.ts'

/** What happens to a queue's waiting tasks when its whole fleet is drained in any mode except light. */
export const ON_SHUTDOWN = ['keep', 'cancel'] as const

export type OnShutdown = (typeof ON_SHUTDOWN)[number]

export interface QueueOptions {
  /** A lower-case letter followed by lower-case letters, digits, dots, hyphens and underscores. At most 40 characters. */
  readonly name: string
  /**
   * What happens to tasks that are not running (waiting, scheduled, retrying or requeued) when a command drains the queue's whole
   * fleet in any mode except light. With `keep`, the default, these tasks stay until the queue is resumed. With `cancel`, they
   * are cancelled with reason `queue_shutdown`, and callers that wait for them are notified. Draining a single worker does not
   * cancel any tasks.
   */
  readonly onShutdown?: OnShutdown
  /**
   * How long the queue's ended tasks are kept, by status, for example `{ dead: { age: '90d', count: 10_000 } }`. If a limit is
   * omitted, the default that {@link KeptOptions} describes applies. By default, completed tasks are kept for 24 hours, dead ones
   * for 30 days, and cancelled and expired ones for 7 days. If workers have different limits, those of the worker that opened the
   * queue last apply.
   */
  readonly retention?: RetentionOptions
  /**
   * How long an API remembers the first response to each Idempotency-Key, at least '1s'. A request can specify a shorter time.
   * Defaults to the API's `idempotencyLife`, which is 24 hours by default.
   * After a change, keys that were remembered for the time before are not found any more.
   */
  readonly idempotencyLife?: Duration
  /**
   * Limits how many tasks may wait in the queue, how much memory they may take in Redis, and how long they may wait, for example `{
   * maxTasks: 10_000, maxBytes: '64MiB' }`. If a limit is reached, further tasks are refused with `queue_full`. Retries, requeues
   * and child tasks are never refused, but they count towards the limits. By default, only `maxBytes` is limited.
   */
  readonly limits?: QueueLimitOptions
  /** What happens to a task that exceeds a limit, unless its request specifies another policy. Defaults to `'reject'`. */
  readonly whenFull?: WhenFull
  /**
   * How many events of the queue's tasks are kept, and for how long. With `false`, none of the queue's tasks has events. By default,
   * the last 10,000 events are kept for an hour, and each definition decides whether its tasks have events.
   */
  readonly events?: EventOptions | false
  /**
   * How soon the queue's tasks should start, for example `{ startWithin: '30s', objective: 0.99 }`: 99% of them within 30 s after they are
   * ready. Metrics count how many do, and alerts report if too few do. It applies to every task whose definition has no `slo`. By
   * default, a queue has no objective.
   */
  readonly slo?: SloOptions
  /**
   * Lets the concurrency keys of the queue's tasks take turns, so that a key with many waiting tasks does not make the others wait. With
   * `true`, each key starts one task in its turn. An object gives some keys a larger or smaller share, for example `{ weights: { acme: 3
   * } }`. The tasks without a concurrency key take turns as one more key. Within a key, tasks start in the order of their priorities.
   * By default, the key does not affect the order in which tasks start, unless `limits.perConcurrencyKey` is set.
   */
  readonly fairness?: true | FairnessOptions
  /**
   * Circuit breakers for the services that the queue's tasks call, by name, for example `{ smtp: { openFor: '1m' } }`. While a
   * service fails, the tasks that depend on it (see `dependsOn` of a task) wait without using attempts, and the queue's other
   * tasks go on. Then a few of the waiting tasks probe the service. All workers share a breaker. A queue has at most 32. By
   * default, it has none.
   */
  readonly breakers?: Readonly<Record<string, BreakerOptions>>
}

export interface QueueDefinition {
  readonly name: string
  readonly onShutdown: OnShutdown
  readonly retention: QueueRetention
  /** In seconds. Undefined means the API's default. */
  readonly idempotencyLifeS: number | undefined
  /** Undefined if the queue has no limits. */
  readonly limits: QueueLimits | undefined
  readonly whenFull: WhenFull
  /** False if none of the queue's tasks has events. */
  readonly events: KeptEvents | false
  /** Undefined if only the queue's task definitions may have objectives. */
  readonly slo: Slo | undefined
  /** Undefined if the concurrency keys of the queue's tasks don't take turns. */
  readonly fairness: Fairness | undefined
  /** Undefined if the definition does not limit the queue's concurrency keys. */
  readonly perConcurrencyKey: PerConcurrencyKey | undefined
  /** How many permits the queue has of each name. Undefined if it has none. */
  readonly permits: Permits | undefined
  /** The settings of the queue's circuit breakers. Undefined if it has none. */
  readonly breakers: BreakersOf | undefined
}

/** The objects that {@link defineQueue} has returned, so that unchecked objects of the same shape can be rejected. */
const definitions = new WeakSet<object>()

const SETTINGS: readonly string[] = [
  'name',
  'onShutdown',
  'idempotencyLife',
  'retention',
  'limits',
  'whenFull',
  'events',
  'slo',
  'fairness',
  'breakers',
] satisfies readonly (keyof QueueOptions)[]

/** The retention of every queue that does not set one. */
const NO_RETENTION: QueueRetention = Object.freeze({})

export const QUEUE_NAME_RULE =
  'expected a lower-case letter followed by lower-case letters, digits, dots, hyphens and underscores, at most 40 characters'

/**
 * Defines a queue for the `queue` setting of task definitions. If a queue needs only a name, pass the name there instead. This
 * function is pure: it does not register anything.
 *
 * @example
 * const reports = defineQueue({ name: 'reports', onShutdown: 'cancel' })
 * @throws BullpenError `invalid_definition` or `invalid_duration`.
 */
export function defineQueue(options: QueueOptions): QueueDefinition {
  const { name, onShutdown = 'keep', retention } = options
  const fail = (problem: string): never => {
    throw new BullpenError('invalid_definition', `queue ${JSON.stringify(name)}: ${problem}`)
  }
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) fail(`${unknown} is not a queue setting${suggestion(unknown, SETTINGS)}`)
  if (typeof name !== 'string' || !QUEUE_NAME.test(name)) fail(`invalid name; ${QUEUE_NAME_RULE}`)
  if (!ON_SHUTDOWN.includes(onShutdown)) {
    fail(`onShutdown is ${JSON.stringify(onShutdown)}; expected 'keep' or 'cancel'`)
  }
  const kept = retention === undefined ? NO_RETENTION : queueRetention(retention, fail)
  const lifeMs =
    options.idempotencyLife === undefined
      ? undefined
      : milliseconds(options.idempotencyLife, `idempotencyLife of queue ${name}`)
  if (lifeMs !== undefined && lifeMs < 1_000) {
    fail(`idempotencyLife is ${JSON.stringify(options.idempotencyLife)}; the shortest is '1s'`)
  }
  const idempotencyLifeS = lifeMs === undefined ? undefined : Math.round(lifeMs / 1_000)
  const limits = options.limits === undefined ? undefined : queueLimits(options.limits, fail)
  const whenFull = checkedWhenFull(options.whenFull ?? 'reject', fail)
  const events = options.events === undefined ? DEFAULT_KEPT_EVENTS : keptEvents(options.events, fail)
  const slo = options.slo === undefined ? undefined : parseSlo(options.slo, `queue ${name}`, fail)
  const given = options.limits?.perConcurrencyKey
  const keyLimits = given === undefined ? undefined : perConcurrencyKey(given, fail)
  // The tasks of a key that may not start wait in its lane.
  const { fairness: taken = keyLimits && true } = options
  const fairness = taken === undefined ? undefined : parseFairness(taken, fail)
  const permits = options.limits?.permits === undefined ? undefined : queuePermits(options.limits.permits, fail)
  const breakers = options.breakers === undefined ? undefined : parseBreakers(options.breakers, name, fail)
  const settings = {
    onShutdown,
    idempotencyLifeS,
    retention: kept,
    limits,
    whenFull,
    events,
    slo,
    fairness,
    perConcurrencyKey: keyLimits,
    permits,
    breakers,
  }
  const definition = Object.freeze({ name, ...settings })
  definitions.add(definition)
  return definition
}

/** Returns the definition of a queue that has only a name. */
export function defaultQueue(name: string): QueueDefinition {
  return {
    name,
    onShutdown: 'keep',
    idempotencyLifeS: undefined,
    retention: NO_RETENTION,
    limits: undefined,
    whenFull: 'reject',
    events: DEFAULT_KEPT_EVENTS,
    slo: undefined,
    fairness: undefined,
    perConcurrencyKey: undefined,
    permits: undefined,
    breakers: undefined,
  }
}

/** Returns the definition for a queue name or a result of {@link defineQueue}, and undefined for anything else. */
export function queueOf(given: unknown): QueueDefinition | undefined {
  if (typeof given === 'string') return QUEUE_NAME.test(given) ? defaultQueue(given) : undefined
  return definitions.has(given as object) ? (given as QueueDefinition) : undefined
}
