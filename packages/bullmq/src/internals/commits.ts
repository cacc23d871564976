// Commits in flight: which script carries out a verdict, and what its answer says about the commit.
//
// A commit is settled when Redis has answered its script: confirmed, or refused for good. If the connection is lost before the
// answer arrives, ioredis sends the script again once it is connected, and BullMQ repeats a command that was rejected because of
// the connection. Both may repeat a script that Redis has already run, so that the lock is gone and BullMQ's script refuses it.
// The composed script then looks for what this attempt has stored, and confirms the commit (resent-commit.ts). A commit is
// therefore settled once, however often it is sent.
import type { CommitRefusal } from '@bullpen/contract'
import type { AttemptResult, Verdict } from '@bullpen/engine/internal'

export interface Commit {
  readonly result: AttemptResult
  /** Called once, when Redis has answered, with the reason if the commit was refused. */
  readonly settled: (result: AttemptResult, refusal?: CommitRefusal) => void
}

/** Where each script that carries out a verdict has the job's id, among its keys and arguments. */
export const COMMIT_ID_AT: ReadonlyMap<string, number> = new Map([
  ['moveToFinished', 14],
  ['moveToDelayed', 13],
  ['retryJob', 14],
  ['moveJobFromActiveToWait', 9],
])
/** Where `moveToFinished` has the set that the job is moved to. */
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

/** The commits of one backend whose script has not been sent, or has to be sent again, by the job's id. */
export type PendingCommits = Map<string, Commit>

/**
 * Removes and returns the commit that this script carries out, if any. Each short task gets here, so that it creates nothing. A
 * commit whose task the Worker moves in another way is refused.
 */
export function takeCommit(pending: PendingCommits, script: string, args: readonly unknown[]): Commit | undefined {
  const idAt = pending.size === 0 ? undefined : COMMIT_ID_AT.get(script)
  if (idAt === undefined) return undefined
  const id = String(args[idAt])
  const commit = pending.get(id)
  if (commit === undefined) return undefined
  pending.delete(id)
  if (carriesOut(commit.result.verdict, script, args)) return commit
  commit.settled(commit.result, 'overridden')
  return undefined
}

/**
 * Settles the commit when the answer of its script arrives, and returns the translated answer. If the answer does not arrive, the
 * commit is pending again.
 */
export function settleByAnswer(
  pending: PendingCommits,
  commit: Commit,
  answer: Promise<unknown>,
  translate: (answer: unknown) => unknown,
): Promise<unknown> {
  const { result, settled } = commit
  return answer.then(
    (code) => {
      if (typeof code === 'number' && code < 0) settled(result, REFUSALS.get(code) ?? 'store_error')
      else settled(result)
      return translate(code)
    },
    (error: unknown) => {
      if (isAnswer(error)) settled(result, 'store_error')
      else if (!pending.has(result.event.id)) pending.set(result.event.id, commit)
      throw error
    },
  )
}

function carriesOut({ kind }: Verdict, script: string, args: readonly unknown[]): boolean {
  return CARRIED_OUT_BY[kind].includes(script === 'moveToFinished' ? String(args[TARGET_AT]) : script)
}

/** Whether Redis has answered with an error. Any other error means that the answer has not arrived. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}
