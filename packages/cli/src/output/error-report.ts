// Determines how an error is printed, and its exit code.
import { type CallOutcome, type ClientErrorCode, ProblemError } from '@bullpen/client'
import { fieldErrorText } from '@bullpen/contract/internal'
import { UsageError } from '../arguments/usage-error.ts'
import type { CommandName } from '../commands/command-table.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { plain } from './format.ts'
import { OutputError } from './writing.ts'

interface ErrorReport {
  readonly exitCode: ExitCode
  readonly lines: readonly string[]
  /** The error as --json prints it. */
  readonly error: object
}

/** Introduces the command that shows the task whose id is in the error. */
const MAY_BE_STORED = 'the task may have been stored; check with'
const TASK_HINTS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  unique_key_taken: 'to see the task that has the key, run',
}

/**
 * Returns undefined for an unexpected error, which is printed with its stack trace. `command` is the command that was run, if it is
 * known.
 */
export function errorReport(error: unknown, command?: CommandName): ErrorReport | undefined {
  if (error instanceof UsageError) {
    const { message: detail } = error
    return {
      exitCode: EXIT.usage,
      lines: [plain(detail), `run '${['bullpen help', command].filter(Boolean).join(' ')}' for usage`],
      error: { code: 'usage', detail },
    }
  }
  if (error instanceof OutputError) {
    const { message: detail } = error
    return {
      exitCode: EXIT.unwritable,
      lines: [plain(detail), 'requests that were sent before may have taken effect'],
      error: { code: 'unwritable_output', detail },
    }
  }
  if (!(error instanceof ProblemError)) return undefined
  const { code, status, detail, errors, taskId, requestId, outcome } = error
  // The API's detail may already contain the field errors.
  const fields = errors
    .filter((each) => detail !== each.message && !detail?.includes(fieldErrorText(each)))
    .map(fieldErrorText)
  return {
    exitCode: isFromApi(code) ? EXIT.refused : EXIT.unreachable,
    lines: [
      plain([code, detail].filter(Boolean).join(': ')),
      ...fields.map((text) => `  ${plain(text)}`),
      ...hintOn(code, outcome, taskId),
    ],
    error: { code, status, detail, ...(errors.length === 0 ? {} : { errors }), requestId, taskId, outcome },
  }
}

const HINTS: Readonly<Partial<Record<ClientErrorCode, string>>> = {
  unreachable: "check that the API is running, and set its address with --api or BULLPEN_API; see 'bullpen help'",
  unauthorized: 'set BULLPEN_KEY to one of the keys that the API accepts',
}

function hintOn(code: ClientErrorCode, outcome: CallOutcome, taskId: string | undefined): readonly string[] {
  const hint = HINTS[code] === undefined ? [] : [HINTS[code]]
  if (taskId !== undefined) return [...hint, `${TASK_HINTS[code] ?? MAY_BE_STORED}: bullpen show ${plain(taskId)}`]
  if (outcome === 'refused') return hint
  const reason = isFromApi(code) ? 'the API does not know its outcome' : 'it was sent and no valid response arrived'
  return [...hint, `the request may have taken effect, because ${reason}`]
}

function isFromApi(code: ClientErrorCode): boolean {
  return code !== 'unreachable' && code !== 'unexpected_response'
}
