// What is told of an error, and which exit code it has.
import { ProblemError } from '@bullpen/client'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { plain } from './format.ts'

interface Refusal {
  readonly exitCode: ExitCode
  /** For people. */
  readonly lines: readonly string[]
  /** For programs: `code` is what to decide by. */
  readonly error: object
}

/** Undefined for an error that nobody foresaw. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof UsageError) {
    const { message: detail } = error
    return { exitCode: EXIT.usage, lines: [plain(detail)], error: { code: 'usage', detail } }
  }
  if (!(error instanceof ProblemError)) return undefined
  const { code, status, detail, errors, taskId } = error
  const nobody = code === 'unreachable' || code === 'unexpected_answer'
  // The API's detail often is its errors, joined.
  const places = errors.map(({ path, message }) => `${path}: ${message}`).filter((place) => !detail?.includes(place))
  return {
    exitCode: nobody ? EXIT.unreachable : EXIT.refused,
    lines: [
      plain([code, detail].filter(Boolean).join(': ')),
      ...places.map((place) => `  ${plain(place)}`),
      ...(taskId === undefined ? [] : [`it may be stored all the same: bullpen show ${plain(taskId)}`]),
    ],
    error: { code, status, detail, ...(errors.length === 0 ? {} : { errors }), taskId },
  }
}
