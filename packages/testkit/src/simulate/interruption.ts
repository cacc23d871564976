// Decides at which points of a run an attempt can be interrupted, and how.
//
// A point is the counterpart of what tests of databases call a crash point. Every call that a handler awaits has two: one before the
// call takes effect, and one after it has taken effect, but before the handler sees its result. `ctx.once` has a third, after its
// function has returned and before the result is stored. The last point of an attempt is after its handler has returned and before
// the result is committed.
import type { TaskDefinition } from '@bullpen/contract'
import type { Timeouts } from '@bullpen/engine/internal'
import type { CallSite } from './call-site.ts'

export const INTERRUPTION_KINDS = [
  /** The worker dies. Nothing that the handler does after this point happens. Another worker runs the task again. */
  'crash',
  /** The worker drains and its deadline passes. The signal aborts, and what the handler returns within the grace period counts. */
  'drain',
  /** The attempt's run or heartbeat timeout expires. The signal aborts, and what the handler returns no longer counts. */
  'timeout',
  /**
   * The attempt loses its lock, and another attempt runs meanwhile. The signal aborts. A call that does not take the signal returns
   * only when the task has ended, as in a process that was paused or cut off from Redis.
   */
  'lock_lost',
] as const

export type InterruptionKind = (typeof INTERRUPTION_KINDS)[number]

/** The position of a point relative to its call. */
export type PointPhase =
  | 'before'
  /** The call has taken effect, and the handler has not seen its result. */
  | 'after'
  /** The function of `ctx.once` has returned, and its result is not stored. */
  | 'unrecorded'
  /** `ctx.once` has stored the result, and the handler has not seen it. */
  | 'recorded'
  /** The handler has returned, and its output is not committed. */
  | 'returned'

export interface InterruptionPoint {
  /** The same point has the same id in every run. */
  readonly id: string
  /** The fencing token of the attempt. */
  readonly attempt: number
  /** The name of the call, such as `mailer.send`. Empty in the phase `returned`. */
  readonly call: string
  /** The number of the call among the attempt's calls with the same name, starting from 1. */
  readonly occurrence: number
  readonly phase: PointPhase
  /** Whether the handler awaits the call. */
  readonly isAwaited: boolean
  /** Whether the attempt's signal had aborted before the point was reached. */
  readonly isSignalled: boolean
  readonly site: CallSite | undefined
}

export interface PlannedInterruption {
  readonly kind: InterruptionKind
  readonly point: InterruptionPoint
}

/** The interruptions of one run, in the order in which they happen. */
export type Plan = readonly PlannedInterruption[]

/**
 * Returns the interruptions after which the task can run again. The others are left out: a timeout without a limit, or after which
 * no attempt is left, and a drain after which the task is dead because its definition says so.
 */
export function repeatableKinds(
  { kind, timeoutMs, heartbeatMs, onInterrupt, retry }: TaskDefinition,
  defaults: Timeouts,
): readonly InterruptionKind[] {
  const limits = [timeoutMs ?? defaults.timeoutMs, heartbeatMs ?? defaults.heartbeatMs]
  const canTimeOut = kind === 'long' && limits.some((limit) => limit !== 'none') && retry.maxAttempts > 1
  const possible: Readonly<Record<InterruptionKind, boolean>> = {
    crash: true,
    drain: onInterrupt === 'requeue',
    timeout: canTimeOut,
    lock_lost: true,
  }
  return INTERRUPTION_KINDS.filter((each) => possible[each])
}

/** Returns every interruption that is possible at a point. */
export function interruptionsAt(
  point: InterruptionPoint,
  kinds: readonly InterruptionKind[],
): readonly PlannedInterruption[] {
  return kinds.filter((kind) => isPossible(kind, point)).map((kind) => ({ kind, point }))
}

function isPossible(kind: InterruptionKind, { phase, isAwaited, isSignalled }: InterruptionPoint): boolean {
  switch (kind) {
    case 'crash':
      return true
    // The event loop does not run during a call that is not awaited, so nothing else can happen then.
    case 'lock_lost':
      return isAwaited
    // A second signal changes nothing, and after the handler has returned, there is nothing to signal.
    case 'drain':
    case 'timeout':
      return isAwaited && !isSignalled && phase !== 'returned'
  }
}

/** Returns a phrase such as `before mailer.send (src/invoice.ts:12:30)`. */
export function placeText(point: InterruptionPoint): string {
  const location = point.site?.()
  return `${pointText(point)}${location === undefined ? '' : ` (${location})`}`
}

const KIND_TEXTS: Readonly<Record<InterruptionKind, string>> = {
  crash: 'a crash',
  drain: 'a drain',
  timeout: 'a timeout',
  lock_lost: 'a lost lock',
}

/** Returns a phrase such as `a crash, a drain or a lost lock`. */
export function kindsText(kinds: readonly InterruptionKind[]): string {
  const texts = INTERRUPTION_KINDS.filter((kind) => kinds.includes(kind)).map((kind) => KIND_TEXTS[kind])
  return [texts.slice(0, -1).join(', '), ...texts.slice(-1)].filter((text) => text !== '').join(' or ')
}

/** Works like {@link placeText}, without the place in the source. */
export function pointText({ call, occurrence, attempt, phase }: InterruptionPoint): string {
  const number = occurrence === 1 ? '' : `call ${occurrence} of `
  const later = attempt === 1 ? '' : ` in attempt ${attempt}`
  switch (phase) {
    case 'before':
      return `before ${number}${call}${later}`
    case 'after':
      return `after ${number}${call} had taken effect, before it returned${later}`
    case 'unrecorded':
      return `in ${number}${call}${later}, before the result was stored`
    case 'recorded':
      return `after ${number}${call} had stored the result${later}`
    case 'returned':
      return `after the handler had returned, before the result was committed${later}`
  }
}
