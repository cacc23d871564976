// Tracks commits in flight: which script carries out a verdict, and what the script's reply means for the commit.
//
// A commit is settled, as either confirmed or refused, once Redis has replied to its script. If the connection is lost before the
// reply arrives, ioredis sends the script again once it is connected, and BullMQ repeats a command that was rejected because of
// the connection. Either of them may repeat a script that Redis has already run. In that case the lock is gone, and BullMQ's
// script refuses the commit. The composed script then looks for what this attempt stored, and confirms the commit
// (resent-commit.ts). A commit is therefore settled only once, however often it is sent.
import type { CommitRefusal } from '@bullpen/contract'
import type { ErrorKind, Verdict } from '@bullpen/engine/internal'

export interface Commit {
  /** The task's id. */
  readonly id: string
  readonly fencingToken: number
  readonly verdict: Verdict['kind']
  /** The id of the cancel rule that ends the task. The end is counted in this rule's progress. */
  readonly rule?: string | undefined
  /** The argument of the steps that apply the retry budget (../../retry-budget/attempt-counts.ts). By default, they do nothing. */
  readonly budget?: string | undefined
  /** The events that the script adds (../../store/lua/includes/task-events.lua). By default, it adds none. */
  readonly events?: string | undefined
  /** The lines of the follow-ups that the handler has added. By default, there are none. */
  readonly followUps?: string | undefined
  /** What the attempt has shown about services (./ended-calls.ts). By default, nothing. */
  readonly calls?: string | undefined
  /** The kind of error that makes the task dead. By default, it is determined from the failure's reason. */
  readonly kind?: ErrorKind | undefined
  /** Called once, when Redis has replied. `refusal` is the reason if the commit was refused. */
  readonly settled: (refusal?: CommitRefusal) => void
}

/** The index of the job's id among the keys and arguments of each script that carries out a verdict. */
export const COMMIT_ID_AT: ReadonlyMap<string, number> = new Map([
  ['moveToFinished', 14],
  ['moveToDelayed', 13],
  ['retryJob', 14],
  ['moveJobFromActiveToWait', 9],
])
/** The index of the output or of the failure's reason among the keys and arguments of `moveToFinished`. */
export const REASON_AT = 17
/** The index of the target set among the keys and arguments of `moveToFinished`. */
export const TARGET_AT = 18

/** The scripts that carry out each verdict, or the set that `moveToFinished` moves the job to. */
const CARRIED_OUT_BY: Readonly<Record<Verdict['kind'], readonly string[]>> = {
  completed: ['completed'],
  dead: ['failed'],
  cancelled: ['failed'],
  expired: ['failed'],
  retrying: ['moveToDelayed', 'retryJob'],
  snoozed: ['moveToDelayed'],
  requeued: ['moveJobFromActiveToWait'],
  lost: [],
}

/** BullMQ's error codes. */
export const REFUSALS: ReadonlyMap<unknown, CommitRefusal> = new Map<unknown, CommitRefusal>([
  [-1, 'task_removed'],
  [-2, 'lock_lost'],
  [-3, 'not_active'],
  [-4, 'has_children'],
  [-6, 'lock_taken'],
  [-9, 'has_children'],
])

/** One backend's commits, by job id, whose script has not been sent or must be sent again. */
export type PendingCommits = Map<string, Commit>

/**
 * Removes and returns the commit that this script carries out, if any. Every short task takes this path, so the function does not
 * allocate anything. If the Worker moves the task in another way, the commit is refused.
 */
export function takeCommit(pending: PendingCommits, script: string, args: readonly unknown[]): Commit | undefined {
  const idAt = pending.size === 0 ? undefined : COMMIT_ID_AT.get(script)
  if (idAt === undefined) return undefined
  const id = String(args[idAt])
  const commit = pending.get(id)
  if (commit === undefined) return undefined
  pending.delete(id)
  if (carriesOut(commit.verdict, script, args)) return commit
  commit.settled('overridden')
  return undefined
}

/**
 * Settles the commit when its script's reply arrives, and returns the translated reply. If no reply arrives, the commit is
 * pending again.
 */
export function settleByAnswer(
  pending: PendingCommits,
  commit: Commit,
  answer: Promise<unknown>,
  translate: (answer: unknown) => unknown,
): Promise<unknown> {
  const { id, settled } = commit
  return answer.then(
    (code) => {
      if (typeof code === 'number' && code < 0) settled(REFUSALS.get(code) ?? 'store_error')
      else settled()
      return translate(code)
    },
    (error: unknown) => {
      if (isAnswer(error)) settled('store_error')
      else if (!pending.has(id)) pending.set(id, commit)
      throw error
    },
  )
}

function carriesOut(verdict: Verdict['kind'], script: string, args: readonly unknown[]): boolean {
  return CARRIED_OUT_BY[verdict].includes(script === 'moveToFinished' ? String(args[TARGET_AT]) : script)
}

/** Returns whether Redis has replied with this error. Any other error means that no reply has arrived. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}
