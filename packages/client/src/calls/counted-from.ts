// Converts the pointers of an error about one of several requests with the same list of tasks.
import { fieldErrorText, ProblemError } from '@bullpen/contract/internal'

/** The place of a task: `/tasks/3` over HTTP, and `/3` over Redis. */
const PLACE = /^(\/tasks)?\/(\d+)/

/** Returns the error of a request whose first task is number `from` of the list, with pointers that count from the start of the list. */
export function countedFrom(from: number, error: unknown): unknown {
  if (from === 0 || !(error instanceof ProblemError)) return error
  const moved = error.errors.map((each) =>
    'pointer' in each
      ? { ...each, pointer: each.pointer.replace(PLACE, (_, tasks = '', index) => `${tasks}/${Number(index) + from}`) }
      : each,
  )
  const detail = error.errors.reduce((text, each, i) => {
    const after = moved[i] ?? each
    return text.replace(fieldErrorText(each), () => fieldErrorText(after))
  }, error.detail ?? '')
  const { code, outcome, status, requestId, taskId, retryAfterMs, cause } = error
  return new ProblemError({
    ...{ code, outcome, status, requestId, taskId, retryAfterMs, cause },
    detail: error.detail === undefined ? undefined : detail,
    errors: moved,
  })
}
