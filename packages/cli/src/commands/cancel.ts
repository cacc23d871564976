// bullpen cancel: cancels tasks by id, or all tasks of a queue that match a filter.
import { type Cancelled, type CancelPreview, type CancelRequest, formatDuration, milliseconds } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { parseDuration, requireValue, withoutUndefined } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { WHILE_WAITING } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { count, plain } from '../output/format.ts'
import { cancellationLine, cancelledLine } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { commandOf } from './command-table.ts'
import { confirmChange, pollUntil, requireConsent } from './filtered-change.ts'
import { MAX_WAIT } from './wait-for-task.ts'

/** The options that apply only to a cancel by filter. */
const FILTER_OPTIONS = ['queue', 'task', 'tag', 'older-than', 'dry-run', 'yes'] as const

export async function cancel(context: CommandContext): Promise<ExitCode> {
  const { positionals, values } = context
  const given = FILTER_OPTIONS.filter((name) => values[name] !== undefined).map((name) => `--${name}`)
  if (positionals.length > 0 && given.length > 0) {
    throw new UsageError(`IDs and ${given.join(', ')} cannot be combined`)
  }
  if (given.length > 0) return await cancelByFilter(context)
  if (positionals.length === 0) {
    throw new UsageError(`missing argument; expected bullpen cancel ${commandOf('cancel').usage}`)
  }
  return await cancelByIds(context)
}

async function cancelByFilter(context: CommandContext): Promise<ExitCode> {
  const { values, connect, out, by } = context
  const filter = parseFilter(context)
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  requireConsent('cancel', context)
  const client = connect()
  const code = await confirmChange(context, {
    verb: 'cancel',
    preview: () => client.previewCancel(filter),
    describe: (preview) => matchText(preview, filter),
  })
  if (code !== undefined) return code
  const cancellation = await client.cancelMany(withoutUndefined({ ...filter, by }))
  await out.answer(cancellation, () => [cancellationLine(cancellation)])
  if (wait === undefined) return EXIT.success
  const until = performance.now() + milliseconds(wait)
  const waiting = connect(WHILE_WAITING)
  const last = await pollUntil(() => waiting.cancellation(cancellation.id), {
    isOver: ({ status }) => status === 'done',
    until,
  })
  await out.answer(last, () => [cancellationLine(last)])
  return last.status === 'done' ? EXIT.success : EXIT.incomplete
}

function parseFilter({ values }: CommandContext): CancelRequest {
  const { task, tag: tags = [] } = values
  const queue = requireValue('--queue QUEUE', values.queue)
  const olderThan = parseDuration('--older-than', values['older-than'])
  const [tag] = tags
  if (tags.length > 1) throw new UsageError('cancel accepts a single --tag')
  return withoutUndefined({ queue, task, tag, olderThan })
}

/** Describes the matching tasks, such as `12 tasks of email (task receipt.send, tag batch:7)`. */
function matchText({ matching, exact }: CancelPreview, { queue, task, tag, olderThan }: CancelRequest): string {
  const conditions = [
    task === undefined ? '' : `task ${task}`,
    tag === undefined ? '' : `tag ${tag}`,
    olderThan === undefined ? '' : `older than ${olderThan}`,
  ].filter(Boolean)
  const filter = conditions.length === 0 ? '' : ` (${conditions.join(', ')})`
  return plain(`${exact ? '' : 'at least '}${count(matching, 'task')} of ${queue}${filter}`)
}

/** Cancels each id, even if the API has rejected an earlier one. Returns the highest exit code. */
async function cancelByIds({ positionals, values, connect, out, by, reportError }: CommandContext): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const client = connect()
  const options = withoutUndefined({ wait, by })
  let highest: ExitCode = EXIT.success
  for (const id of positionals) {
    const code = await client.cancel(id, options).then(async (cancelled) => {
      await out.answer(cancelled, (layout) => [cancelledLine(cancelled, layout)])
      return exitCodeOf(cancelled, wait !== undefined)
    }, reportError)
    if (code > highest) highest = code
    if (code === EXIT.unreachable) break
  }
  return highest
}

/** Returns success for a task that is cancelled and, unless --wait was given, also for a task that has been signalled. */
function exitCodeOf({ outcome, status }: Cancelled, waited: boolean): ExitCode {
  const isCancelled = status === 'cancelled' || (outcome === 'cancelling' && !waited)
  return isCancelled ? EXIT.success : EXIT.incomplete
}
