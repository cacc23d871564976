// The end of an attempt as arguments of the script that carries it out (lua/includes/end/attempt-end.lua), and what the script's reply
// means.
//
// An end is settled, as either confirmed or refused, once Redis has replied to its script. If the connection is lost before the reply
// arrives, ioredis sends the script again once it is connected, and BullMQ repeats a command that was rejected because of the connection.
// Either of them may repeat a script that Redis has already run. The script then recognises what this attempt has stored, and confirms the
// end (lua/includes/end/resent-end.lua). An end is therefore settled only once, however often it is sent.
import type { CommitRefusal } from '@bullpen/contract'
import type { ErrorKind, Random, ServiceCall, Survival, Verdict } from '@bullpen/engine/internal'

/** What Bullpen knows about the end of an attempt beyond what BullMQ passes on. Whatever is missing does not apply. */
export interface AttemptEnd {
  /** The task's id. */
  readonly id: string
  /** The token of its lock, which tells it from another attempt of the same task that is ending in this process, and has lost its lock. */
  readonly token: string
  /**
   * A task that was `released` or `postponed` has not been started. A released one returns to the head of its queue, and a postponed one
   * after a delay.
   */
  readonly verdict: Verdict['kind'] | 'released' | 'postponed'
  readonly fencingToken?: number
  /** The delay of a task that is retried or snoozed, in ms. */
  readonly delayMs?: number | undefined
  /** Why the attempt has failed. */
  readonly reason?: string | undefined
  /** The stacks to store, the first lines of which are the attempt records. */
  readonly stacks?: string | undefined
  /** The id of the cancel rule that ends the task. The end is counted in this rule's progress. */
  readonly rule?: string | undefined
  /** What applies the retry budget (../retry-budget/attempt-counts.ts). */
  readonly budget?: string | undefined
  /** The events that the script adds (lua/includes/task/task-events.lua). */
  readonly events?: string | undefined
  /** The lines of the follow-ups that the handler has added. */
  readonly followUps?: string | undefined
  /** What the attempt has shown about services. */
  readonly calls?: string | undefined
  /** The kind of error that makes the task dead. By default, it is determined from the failure's reason. */
  readonly kind?: ErrorKind | undefined
  /** What the attempt has shown about a quarantined task. */
  readonly survival?: Survival
  /** Called once, when Redis has replied. `refusal` is the reason if the end was refused. */
  readonly settled?: ((refusal?: CommitRefusal) => void) | undefined
}

/** The methods of BullMQ's backend that move a task out of the active ones, by what becomes of the task. */
export type Move = 'completed' | 'failed' | 'delayed' | 'retried' | 'waiting'

/** The moves that carry out each verdict. */
const CARRIED_OUT_BY: Readonly<Record<AttemptEnd['verdict'], readonly Move[]>> = {
  completed: ['completed'],
  dead: ['failed'],
  cancelled: ['failed'],
  expired: ['failed'],
  retrying: ['delayed', 'retried'],
  snoozed: ['delayed'],
  postponed: ['delayed'],
  requeued: ['waiting'],
  released: ['waiting'],
  lost: [],
}

/** BullMQ's error codes. */
const REFUSALS: ReadonlyMap<number, CommitRefusal> = new Map<number, CommitRefusal>([
  [-1, 'task_removed'],
  [-2, 'lock_lost'],
  [-3, 'not_active'],
  [-4, 'has_children'],
  [-6, 'lock_taken'],
  [-9, 'has_children'],
])

/** One backend's ends whose script has not been sent or must be sent again, by token and task. */
export type PendingEnds = Map<string, AttemptEnd>

const keyOf = (id: string, token: string): string => `${token} ${id}`

export function addEnd(pending: PendingEnds, end: AttemptEnd): void {
  pending.set(keyOf(end.id, end.token), end)
}

/**
 * Removes and returns the end that this move of the task carries out, if any. If BullMQ moves the task in another way, the end is refused.
 */
export function takeEnd(pending: PendingEnds, id: string, token: string, move: Move): AttemptEnd | undefined {
  if (pending.size === 0) return undefined
  const key = keyOf(id, token)
  const end = pending.get(key)
  if (end === undefined) return undefined
  pending.delete(key)
  if (CARRIED_OUT_BY[end.verdict].includes(move)) return end
  end.settled?.('overridden')
  return undefined
}

/** Settles an end for which the script has replied this code. */
export function settle({ settled }: AttemptEnd, code: number): void {
  if (code < 0) settled?.(REFUSALS.get(code) ?? 'store_error')
  else settled?.()
}

/** After an error, settles the end if Redis has replied. Otherwise, the end is pending again. */
export function settleByError(pending: PendingEnds, end: AttemptEnd, error: unknown): void {
  if (error instanceof Error && error.name === 'ReplyError') end.settled?.('store_error')
  else addEnd(pending, end)
}

/** Encodes what an attempt has shown about services. */
export function encodeCalls(calls: readonly ServiceCall[], random: Random): string {
  return JSON.stringify(calls.map(({ service, failed, slow }) => [service, failed, slow, random()]))
}

/** The verdicts that the script knows. */
export type ScriptVerdict =
  | ('completed' | 'dead' | 'cancelled' | 'expired')
  | ('retrying' | 'scheduled' | 'postponed')
  | ('retried' | 'requeued' | 'released')

/** An argument of the script. */
export type Value = string | number

export interface ScriptEnd {
  readonly id: string
  readonly verdict: ScriptVerdict
  readonly value: Value
  readonly end: AttemptEnd | undefined
  /** Further names and values that the verdict has. */
  readonly more: Value[]
  /** Fields to store with the task. */
  readonly fields: Readonly<Record<string, unknown>> | undefined
}

/**
 * Returns the arguments of an end that follow its task's id. Every end of a task takes this path, so the function allocates little more
 * than what it returns.
 */
export function endArguments({ verdict, value, end, more, fields }: ScriptEnd): Value[] {
  if (end !== undefined) {
    const { rule, budget, events, followUps, calls, survival } = end
    if (rule) more.push('rule', rule)
    if (budget) more.push('budget', budget)
    if (events) more.push('events', events)
    if (followUps) more.push('followUps', followUps)
    if (calls) more.push('calls', calls)
    if (survival) more.push('survival', survival)
  }
  const stored: Value[] = []
  const { reason, stacks } = end ?? NOTHING
  for (const [name, each] of Object.entries(fields ?? NOTHING)) {
    // What Bullpen knows takes the place of what BullMQ has made of the error that it was told.
    const isKnown = name === 'stacktrace' ? stacks !== undefined : name === 'failedReason' && reason !== undefined
    if (each !== undefined && !isKnown) stored.push(name, each as Value)
  }
  if (stacks !== undefined) stored.push('stacktrace', stacks)
  // The script stores the value of an end itself.
  if (reason !== undefined && reason !== value) stored.push('failedReason', reason)
  return [verdict, value, end?.fencingToken ?? '', more.length / 2, ...more, stored.length / 2, ...stored]
}

const NOTHING: { readonly reason?: string; readonly stacks?: string } = Object.freeze({})
