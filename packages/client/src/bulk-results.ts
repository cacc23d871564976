// Repeats a bulk call, and combines the results of its tries into one result for each task.
import { type BulkEnqueued, ProblemError, type Try } from '@bullpen/contract/internal'
import { mayRepeat, type Repeat, withOutcome } from './repetition.ts'

type Results = readonly BulkEnqueued[]

/**
 * Repeats the call as long as the whole call, or one of its tasks, fails for a temporary reason. Resolves with the results as soon as
 * there are any and the call is no longer repeated. Rejects if no try has returned results, or if the signal aborts.
 */
export async function collectResults(
  send: Try<Results>,
  repeat: Repeat,
  signal: AbortSignal | undefined,
): Promise<Results> {
  let results: Results | undefined
  /** Whether a try may have stored any of the tasks, because its response was lost. */
  let isAnyUnknown = false
  const attempt: Try<Results> = async (current) => {
    const latest = await send(current).catch((error: unknown) => {
      isAnyUnknown ||= error instanceof ProblemError && error.outcome === 'unknown'
      throw error
    })
    results = latest.map((result, i) => combine(results?.[i], result))
    const temporary = results.find((each) => 'error' in each && mayRepeat('idempotent', each.error))
    if (temporary !== undefined && 'error' in temporary) throw temporary.error
    return results
  }
  const rejection = await repeat('idempotent', attempt, signal).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  if (rejection !== undefined && (results === undefined || signal?.aborted)) throw rejection.error
  const known = results ?? []
  return isAnyUnknown ? known.map(withUnknownOutcome) : known
}

/** A task that an earlier try has stored keeps this result. */
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
