// Repeats a bulk call, and combines the results of its tries into one result for each task.
import { type BulkEnqueued, ProblemError, type Try } from '@bullpen/contract/internal'
import { mayRepeat, type Repeat, withOutcome } from '../repetition.ts'

type Results = readonly BulkEnqueued[]

/**
 * Repeats the call while the call itself, or any of its tasks, fails with a temporary error. Resolves with the results once there is
 * nothing left to repeat. Rejects if no try returned results, or if the signal is aborted.
 */
export async function collectResults(
  send: Try<Results>,
  repeat: Repeat,
  signal: AbortSignal | undefined,
  waitMs: number,
): Promise<Results> {
  const tries: Tries = { results: undefined, isAnyUnknown: false }
  try {
    await repeat('idempotent', (current) => tryOnce(send, tries, current), signal, waitMs)
  } catch (error) {
    if (tries.results === undefined || signal?.aborted || !(error instanceof ProblemError)) throw error
  }
  const { results = [], isAnyUnknown } = tries
  return isAnyUnknown ? results.map(withUnknownOutcome) : results
}

/** What is known after some tries. */
interface Tries {
  /** Undefined if no try has returned results. */
  results: Results | undefined
  /** Whether a try may have stored any of the tasks, because its response was lost. */
  isAnyUnknown: boolean
}

/** Sends the call once. @throws ProblemError if the whole call fails, or the error of a task that failed for a temporary reason. */
async function tryOnce(send: Try<Results>, tries: Tries, signal: AbortSignal | undefined): Promise<void> {
  const latest = await send(signal).catch((error: unknown) => {
    tries.isAnyUnknown ||= error instanceof ProblemError && error.outcome === 'unknown'
    throw error
  })
  const earlier = tries.results
  tries.results = latest.map((result, i) => combine(earlier?.[i], result))
  for (const result of tries.results) if ('error' in result && mayRepeat('idempotent', result.error)) throw result.error
}

/** Combines two results of one task. If the earlier try stored the task, its result is kept. */
function combine(earlier: BulkEnqueued | undefined, latest: BulkEnqueued): BulkEnqueued {
  if (earlier === undefined || !('error' in latest)) return earlier !== undefined && 'id' in earlier ? earlier : latest
  if ('id' in earlier) return earlier
  const wasUnknown = 'error' in earlier && earlier.error.outcome === 'unknown'
  return wasUnknown
    ? { error: withOutcome(latest.error, 'unknown', earlier.error.taskId ?? latest.error.taskId) }
    : latest
}

function withUnknownOutcome(result: BulkEnqueued): BulkEnqueued {
  return 'error' in result ? { error: withOutcome(result.error, 'unknown', result.error.taskId) } : result
}
