// Decides when tasks that depend on a service may start, from how their calls of the service end: a circuit breaker, as
// in Nygard's "Release It!". The names are those of resilience4j and Polly.
//
//             too many calls failed or were slow                 the time has passed
//   closed ─────────────────────────────────────────▶ open ◀──────────────────────────────▶ half-open
//      ▲                                                              a probe failed            │
//      └────────────────────────────────────────────────────────────────────────────────────────┘
//                                   as many probes succeeded as the settings require
//
// Each queue has one breaker for each service, which all of its workers share. The store keeps the breaker and applies
// these functions in the scripts that start and end attempts, so a transition is one atomic step, and two workers never
// make the same one. No process is needed for time to pass: an open breaker becomes half-open when the next task asks
// whether it may start (see `advance`).
//
// **Generations.** Each transition increments the generation. An attempt gets the current generation when it starts,
// and the store keeps it with the attempt. The end of the attempt counts only if the generation still applies. The
// attempts that were running when the breaker opened therefore neither keep it open nor close it, however late they
// end, and they are not counted after it has closed. Nothing depends on the clocks of workers, because all times are
// those of the store's clock.
//
// **Window.** A closed breaker counts calls in ten buckets of time, so it takes the same memory for any number of
// calls. A call is forgotten when its bucket is as old as the window, so it counts for nine tenths of the window at
// least.
//
// **Probes.** A half-open breaker lets tasks start in periods that are as long as the breaker was to be open before,
// and at most `probes` in each. A period begins with its first probe. The number of probes depends on nothing but what
// has started, so it is exact even if workers die, and nothing has to be given back. If a probe ends without having
// shown anything, because its task is cancelled or its worker is lost, the next period brings another one. A probe that
// takes longer than its period still counts when it ends. It does not hold up the next period, so a probe that hangs
// does not keep the breaker half-open forever.
//
// **Open.** Each failed probe doubles the time that the breaker is open, up to a maximum. A random part is added, so
// that the breakers of several queues don't probe the same service at the same moment. If the store's clock steps back,
// the breaker is open no longer than that.
//
// **By hand.** A person may set the breaker to stay open or closed. A breaker that stays closed goes on counting. When
// it is set back to `auto`, the next call decides. A breaker that was set to stay open begins with probes.
import type { BreakerMode, BreakerSettings } from '@bullpen/contract'
import type { Random } from '../ports/clock.ts'

/** The calls that ended within a tenth of the window. */
export interface Bucket {
  /** When the bucket begins, in ms since 1970. */
  readonly at: number
  readonly calls: number
  readonly failures: number
  readonly slow: number
}

interface AnyState {
  /** Increases with every transition. */
  readonly generation: number
  /** When the breaker got its state, in ms since 1970. */
  readonly since: number
  readonly mode: BreakerMode
}

/** Tasks start, and their calls are counted. Tripped by `record`, and opened by hand. */
export interface ClosedBreaker extends AnyState {
  readonly state: 'closed'
  readonly buckets: readonly Bucket[]
}

/** No task starts. Becomes half-open when its time has passed, unless it was opened by hand. */
export interface OpenBreaker extends AnyState {
  readonly state: 'open'
  /** When tasks may probe the service, in ms since 1970. `none` if the breaker was opened by hand. */
  readonly until: number | 'none'
  /** How often the breaker has opened since it was closed. At least 1. */
  readonly openings: number
}

/** A few tasks probe the service. Closed or opened by `record`, or by hand. */
export interface HalfOpenBreaker extends AnyState {
  readonly state: 'half_open'
  /**
   * The generation of the first period. All probes since then count. The current generation is that of the current
   * period.
   */
  readonly from: number
  /** How many probes have started in the current period. */
  readonly started: number
  /** When the period ends, in ms since 1970. `none` if it has not begun. */
  readonly until: number | 'none'
  /** How many probes have succeeded. */
  readonly succeeded: number
  readonly openings: number
}

export type Breaker = ClosedBreaker | OpenBreaker | HalfOpenBreaker

/** A call of the service that has ended. */
export interface EndedCall {
  /** The generation that the attempt got when it started. */
  readonly generation: number
  readonly failed: boolean
  readonly slow: boolean
}

/** How many buckets the window has. */
export const BUCKETS = 10

/** The largest part of the time for which the breaker is open that is added at random. */
export const OPEN_JITTER = 0.1

/** A sum of fractions may be slightly less than the whole number that it stands for. */
const ROUNDING = 1e-9

/** Returns a breaker that has counted nothing. */
export function newBreaker(now: number): ClosedBreaker {
  return { state: 'closed', mode: 'auto', generation: 0, since: now, buckets: [] }
}

/** Returns the breaker after what has happened because time has passed. */
export function advance(breaker: Breaker, now: number, settings: BreakerSettings): Breaker {
  if (breaker.state === 'closed') return breaker
  if (breaker.until === 'none' || !hasPassed(breaker.until, now, settings)) return breaker
  // It became half-open when its time had passed, even if no script has looked at it since. If that time is still
  // ahead, the clock has stepped back.
  if (breaker.state === 'open') return halfOpened(breaker, Math.min(breaker.until, now))
  return { ...breaker, generation: breaker.generation + 1, started: 0, until: 'none' }
}

/**
 * Returns when a task may start, in ms since 1970, as far as is known: `now` if it may start now, and 'none' if that
 * depends on a person.
 */
export function startsAt(breaker: Breaker, now: number, settings: BreakerSettings): number | 'none' {
  const current = advance(breaker, now, settings)
  if (current.state === 'open') return current.until
  return current.state === 'closed' || current.started < settings.probes ? now : current.until
}

/**
 * Returns the breaker after the start of a task, whose attempt gets the generation of this breaker. Undefined if no
 * task may start.
 */
export function admit(breaker: Breaker, now: number, settings: BreakerSettings): Breaker | undefined {
  if (startsAt(breaker, now, settings) !== now) return undefined
  const current = advance(breaker, now, settings)
  if (current.state !== 'half_open') return current
  const until = current.until === 'none' ? now + openMs(current.openings, settings) : current.until
  return { ...current, started: current.started + 1, until }
}

/** Returns the breaker after the end of a call. */
export function record(
  breaker: Breaker,
  call: EndedCall,
  now: number,
  settings: BreakerSettings,
  random: Random,
): Breaker {
  const { generation, failed, slow } = call
  switch (breaker.state) {
    case 'open':
      return breaker
    case 'closed': {
      if (generation !== breaker.generation) return breaker
      const buckets = counted(breaker.buckets, call, now, settings)
      const isTripped = breaker.mode === 'auto' && exceedsRates(buckets, now, settings)
      return isTripped ? opened(breaker, 1, now, settings, random) : { ...breaker, buckets }
    }
    case 'half_open': {
      if (generation < breaker.from) return breaker
      if (failed || slow) return opened(breaker, breaker.openings + 1, now, settings, random)
      const succeeded = breaker.succeeded + 1
      return succeeded < settings.probes ? { ...breaker, succeeded } : closed(breaker, now)
    }
  }
}

/** Returns the breaker after a person has set its mode. The same mode again changes nothing. */
export function setMode(breaker: Breaker, mode: BreakerMode, now: number): Breaker {
  if (mode === breaker.mode) return breaker
  const set = { ...breaker, mode }
  if (mode === 'open') {
    const openings = set.state === 'closed' ? 1 : set.openings
    return { ...next(set, now), state: 'open', until: 'none', openings }
  }
  if (mode === 'closed') return set.state === 'closed' ? set : closed(set, now)
  return set.state === 'open' ? halfOpened(set, now) : set
}

/** Returns the sum of the calls in the window. */
export function callsIn(
  buckets: readonly Bucket[],
  now: number,
  settings: BreakerSettings,
): Pick<Bucket, 'calls' | 'failures' | 'slow'> {
  let [calls, failures, slow] = [0, 0, 0]
  for (const bucket of buckets) {
    if (!isInWindow(bucket, now, settings)) continue
    calls += bucket.calls
    failures += bucket.failures
    slow += bucket.slow
  }
  return { calls, failures, slow }
}

/**
 * Returns for how long a breaker is open that has opened this often since it was closed, in ms, without the random
 * part.
 */
export function openMs(openings: number, { openMs, maxOpenMs }: BreakerSettings): number {
  return Math.min(openMs * 2 ** (openings - 1), maxOpenMs)
}

/**
 * A time that is further ahead than any breaker waits was stored before the store's clock stepped back, or with other
 * settings.
 */
function hasPassed(until: number, now: number, { maxOpenMs }: BreakerSettings): boolean {
  return until <= now || until - now > maxOpenMs * (1 + OPEN_JITTER) + 1
}

function opened(
  breaker: ClosedBreaker | HalfOpenBreaker,
  openings: number,
  now: number,
  settings: BreakerSettings,
  random: Random,
): OpenBreaker {
  const until = now + Math.ceil(openMs(openings, settings) * (1 + OPEN_JITTER * random()))
  return { ...next(breaker, now), state: 'open', until, openings }
}

function halfOpened(breaker: OpenBreaker, at: number): HalfOpenBreaker {
  const { openings } = breaker
  const after = next(breaker, at)
  return { ...after, state: 'half_open', from: after.generation, started: 0, until: 'none', succeeded: 0, openings }
}

function closed(breaker: Breaker, now: number): ClosedBreaker {
  return { ...next(breaker, now), state: 'closed', buckets: [] }
}

function next({ generation, mode }: Breaker, now: number): AnyState {
  return { generation: generation + 1, mode, since: now }
}

function exceedsRates(buckets: readonly Bucket[], now: number, settings: BreakerSettings): boolean {
  const { calls, failures, slow } = callsIn(buckets, now, settings)
  const { minimumCalls, failureRate, slowCallRate } = settings
  if (calls < minimumCalls) return false
  return failures / calls >= failureRate - ROUNDING || slow / calls >= slowCallRate - ROUNDING
}

/** Adds a call to its bucket, and drops the buckets that are no longer needed. */
function counted(
  buckets: readonly Bucket[],
  { failed, slow }: EndedCall,
  now: number,
  settings: BreakerSettings,
): readonly Bucket[] {
  const length = bucketMs(settings)
  const at = Math.floor(now / length) * length
  const kept = buckets.filter((bucket) => bucket.at !== at && isInWindow(bucket, now, settings))
  const own = buckets.find((bucket) => bucket.at === at) ?? { at, calls: 0, failures: 0, slow: 0 }
  const added = {
    at,
    calls: own.calls + 1,
    failures: own.failures + Number(failed),
    slow: own.slow + Number(slow),
  }
  return [...kept, added]
}

/**
 * The bucket that begins a window ago has no more calls of the window. One that lies ahead was stored before the clock
 * stepped back.
 */
function isInWindow({ at }: Bucket, now: number, settings: BreakerSettings): boolean {
  const length = bucketMs(settings)
  const current = Math.floor(now / length) * length
  return at <= current && at > current - BUCKETS * length
}

function bucketMs({ windowMs }: BreakerSettings): number {
  return Math.ceil(windowMs / BUCKETS)
}
