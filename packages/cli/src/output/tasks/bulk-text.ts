// Formats the results of a bulk enqueue.
import { ProblemError } from '@bullpen/client'
import { fieldErrorText } from '@bullpen/contract/internal'
import { errorReport } from '../error-report.ts'

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

/**
 * Returns the error of a request with the tasks of a file, with the number of a line instead of each pointer to a task. `lineOf`
 * returns the line of the task with this index.
 */
export function namingLines(error: ProblemError, lineOf: (index: number) => number | undefined): ProblemError {
  const { code, outcome, status, requestId, taskId, cause } = error
  let { detail = '' } = error
  const errors = error.errors.map((each) => {
    const line = 'pointer' in each ? lineOf(Number(/^\/tasks\/(\d+)/.exec(each.pointer)?.[1])) : undefined
    if (line === undefined || !('pointer' in each)) return each
    const within = fieldErrorText({ ...each, pointer: each.pointer.replace(PLACE, '') })
    const named = { pointer: '', message: `line ${line}: ${within}` }
    detail = detail.replace(fieldErrorText(each), () => named.message)
    return named
  })
  return new ProblemError({ ...{ code, outcome, status, requestId, taskId, cause }, detail, errors })
}
