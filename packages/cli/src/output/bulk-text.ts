// Formats the results of a bulk enqueue.
import { ProblemError } from '@bullpen/client'
import { errorReport } from './error-report.ts'

/** The number of lines with each result. Blank lines are not counted. */
export interface BulkTally {
  lines: number
  enqueued: number
  /** Tasks that an earlier call has stored, or whose unique key another task has. */
  existing: number
  dropped: number
  rejected: number
}

export function emptyTally(): BulkTally {
  return { lines: 0, enqueued: 0, existing: 0, dropped: 0, rejected: 0 }
}

/** Returns text such as `1,000 tasks: 997 enqueued, 2 already stored, 1 rejected`. */
export function tallyText({ lines, enqueued, existing, dropped, rejected }: BulkTally): string {
  const parts = [
    [enqueued, 'enqueued'],
    [existing, 'already stored'],
    [dropped, 'dropped'],
    [rejected, 'rejected'],
  ] as const
  const results = parts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${number.toLocaleString('en')} ${what}`)
  const tasks = `${lines.toLocaleString('en')} task${lines === 1 ? '' : 's'}`
  return `${tasks}${results.length === 0 ? '' : `: ${results.join(', ')}`}`
}

/** Returns the error of a line, as JSON and as text. */
export function lineProblem(line: number, error: ProblemError) {
  const report = errorReport(withinLine(error))
  const [first = error.message, ...more] = report?.lines ?? []
  return { error: { line, ...report?.error }, lines: [`line ${line}: ${first}`, ...more] }
}

/** Returns the error with pointers into the line's own task, instead of the request. */
function withinLine(error: ProblemError): ProblemError {
  const { code, outcome, status, detail, errors, requestId, taskId } = error
  return new ProblemError({
    ...{ code, outcome, status, requestId, taskId },
    detail: detail?.replace(PLACE, '').replace(/^: /, ''),
    errors: errors.map((each) => ('pointer' in each ? { ...each, pointer: each.pointer.replace(PLACE, '') } : each)),
  })
}

/** The place of a task in a request. */
const PLACE = /^\/tasks\/\d+/
