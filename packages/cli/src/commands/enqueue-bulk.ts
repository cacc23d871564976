// bullpen enqueue --bulk: enqueues one task for each line of a file or of standard input.
import { randomUUID } from 'node:crypto'
import type { BulkEnqueued, ProblemError } from '@bullpen/client'
import { type Duration, milliseconds } from '@bullpen/contract'
import { isStored, MAX_IDEMPOTENCY_KEY, MAX_WAIT_S } from '@bullpen/contract/internal'
import { parseEnqueueOptions } from '../arguments/enqueue-options.ts'
import { parseDuration } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { groupLines } from '../bulk/blocks.ts'
import { createSender, MAX_REQUEST_BYTES } from '../bulk/sender.ts'
import { openSource, readSource, SourceError } from '../bulk/source.ts'
import { type BadLine, readTaskLines, type TaskLine } from '../bulk/task-lines.ts'
import { RETRY_FOR } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { count, plain } from '../output/format.ts'
import { type BulkTally, emptyTally, lineProblem, tallyText } from '../output/tasks/bulk-text.ts'
import type { CommandContext } from './command-context.ts'

const DEFAULT_RETRY_FOR: Duration = '1m'
/** How long the API remembers the key that the command generates, unless the command needs it for longer, in seconds. */
const GENERATED_KEY_LIFE_S = 600
/** The longest duration, in seconds. */
const MAX_KEY_LIFE_S = 365 * 86_400
/** A slow connection needs some time for the largest request. */
const REQUEST_TIMEOUT: Duration = '1m'
/** The number of a block follows the key. */
const MAX_KEY = MAX_IDEMPOTENCY_KEY - '/9999999'.length

export async function enqueueBulk(context: CommandContext): Promise<ExitCode> {
  const { values, stdin, connect, out } = context
  const { bulk: file = '-' } = values
  const settings = parseSettings(context)
  const client = connect({ requestTimeout: REQUEST_TIMEOUT })
  const source = await openSource(file, stdin)
  const tally = emptyTally()
  const readerLeft = new AbortController()

  const onBad = ({ number, problem }: BadLine): void => {
    tally.lines += 1
    tally.rejected += 1
    out.error({ line: number, code: 'invalid_line', detail: problem }, [`line ${number}: ${problem}`])
  }
  const onResult = async (line: TaskLine, result: BulkEnqueued): Promise<void> => {
    countResult(tally, result)
    if ('error' in result) {
      const { error, lines } = lineProblem(line.number, result.error)
      out.error(error, lines)
    } else if (out.json && !(await out.answer({ line: line.number, ...result }, () => []))) readerLeft.abort()
  }
  const onWait = ({ message }: ProblemError): void => out.progress(`waiting to send again: ${message}`)

  const send = createSender({ client, ...settings, onResult, onWait, signal: readerLeft.signal })
  const { task, defaults } = settings
  const lines = readTaskLines(readSource(source, file), { task, defaults, maxBytes: MAX_REQUEST_BYTES })
  let code: ExitCode = EXIT.success
  try {
    for await (const group of groupLines(lines, MAX_REQUEST_BYTES, onBad)) {
      tally.lines += group.length
      await send(group)
      if (readerLeft.signal.aborted) break
      out.progress(tallyText(tally))
    }
  } catch (error) {
    code = reportStop(context, error)
  }
  out.progress()
  const hasStopped = code !== EXIT.success || readerLeft.signal.aborted
  if (code === EXIT.unwritable) out.remark(tallyText(tally))
  else code = await printTally(context, tally, code)
  const rest = tally.lines - tally.enqueued - tally.existing - tally.dropped - tally.rejected
  if (hasStopped) out.remark(restNote(rest, values['idempotency-key']))
  if (code !== EXIT.success) return code
  return tally.dropped + tally.rejected + rest > 0 || readerLeft.signal.aborted ? EXIT.incomplete : EXIT.success
}

function parseSettings({ positionals, values }: CommandContext) {
  const [task, input] = positionals
  const key = values['idempotency-key']
  if (input !== undefined) throw new UsageError('INPUT and --bulk cannot be combined')
  if (values.wait !== undefined) throw new UsageError('--wait and --bulk cannot be combined')
  if (key !== undefined && (key.length > MAX_KEY || !/^[\x20-\x7e]+$/.test(key))) {
    throw new UsageError(`--idempotency-key is '${plain(key)}'; expected 1 to ${MAX_KEY} printable ASCII characters`)
  }
  const retryForMs = milliseconds(parseDuration('--retry-for', values['retry-for']) ?? DEFAULT_RETRY_FOR)
  return {
    task,
    defaults: parseEnqueueOptions(values),
    key: key ?? randomUUID(),
    keyLife: key === undefined ? generatedKeyLife(retryForMs) : undefined,
    retryForMs,
  }
}

/**
 * Returns how long the API has to remember the key that the command generates, which only makes the command's own repeats safe. The
 * last of them may begin when `retryForMs` are over. The client then still repeats it, and each try may wait for room in a queue.
 */
function generatedKeyLife(retryForMs: number): Duration {
  const lastRequestMs = milliseconds(RETRY_FOR) + milliseconds(REQUEST_TIMEOUT) + MAX_WAIT_S * 1_000
  const neededS = Math.ceil((retryForMs + lastRequestMs) / 1_000)
  return `${Math.min(Math.max(GENERATED_KEY_LIFE_S, neededS), MAX_KEY_LIFE_S)}s`
}

function countResult(tally: BulkTally, result: BulkEnqueued): void {
  if ('error' in result) tally.rejected += 1
  else if (result.action === 'dropped') tally.dropped += 1
  else if (isStored(result.action) && result.replayed === undefined) tally.enqueued += 1
  else tally.existing += 1
}

/** Prints why no more tasks are sent, and returns the exit code. Rethrows an unexpected error, such as a failed write. */
function reportStop({ reportError, out }: CommandContext, error: unknown): ExitCode {
  out.progress()
  if (!(error instanceof SourceError)) return reportError(error)
  const { message } = error
  out.error({ code: 'unreadable_file', detail: message }, [message])
  return EXIT.incomplete
}

/** Prints the summary, on standard error if standard output cannot be written. Returns the exit code. */
async function printTally({ out, reportError }: CommandContext, tally: BulkTally, code: ExitCode): Promise<ExitCode> {
  try {
    await out.answer({ summary: tally }, () => [tallyText(tally)])
    return code
  } catch (error) {
    const failed = reportError(error)
    out.remark(tallyText(tally))
    return failed
  }
}

/** `rest` is the number of tasks that were read and have no result. */
function restNote(rest: number, key: string | undefined): string {
  const unread =
    rest === 0
      ? 'the rest of the input was not read'
      : `${count(rest, 'task')} may or may not be stored, and the lines after them were not read`
  const advice =
    key === undefined
      ? 'to be able to repeat the command safely, use --idempotency-key'
      : 'to enqueue the rest, repeat the command with the same --idempotency-key'
  return `stopped: ${unread}; ${advice}`
}
