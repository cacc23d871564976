// bullpen cancel: cancels tasks by id, or all tasks of a queue that match a filter.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import {
  type Cancellation,
  type Cancelled,
  type CancelPreview,
  type CancelRequest,
  formatDuration,
  milliseconds,
} from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { parseDuration, requireValue } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { WHILE_WAITING } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { count, plain } from '../output/format.ts'
import { cancellationLine, cancelledLine } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { commandOf } from './command-table.ts'
import { MAX_WAIT } from './wait-for-task.ts'

const POLL_MS = 500
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
  const mayAsk = context.isInteractive && !out.json
  if (!values['dry-run'] && !values.yes && !mayAsk) {
    throw new UsageError(
      'cancel --queue asks for confirmation, which requires a terminal; add --yes to confirm, or --dry-run to count the tasks',
    )
  }
  const client = connect()
  if (values['dry-run']) {
    const preview = await client.previewCancel(filter)
    await out.answer(preview, () => [`would cancel ${matchText(preview, filter)}`])
    return EXIT.success
  }
  if (!values.yes) {
    const preview = await client.previewCancel(filter)
    if (preview.exact && preview.matching === 0) {
      out.remark(`nothing to cancel: ${matchText(preview, filter)}`)
      return EXIT.success
    }
    if (!(await context.confirm(`Cancel ${matchText(preview, filter)}?`))) {
      out.remark('nothing was cancelled')
      return EXIT.incomplete
    }
  }
  const cancellation = await client.cancelMany({ ...filter, ...(by !== undefined && { by }) })
  await out.answer(cancellation, () => [cancellationLine(cancellation)])
  if (wait === undefined) return EXIT.success
  const last = await waitUntilDone(connect(WHILE_WAITING), cancellation, performance.now() + milliseconds(wait))
  await out.answer(last, () => [cancellationLine(last)])
  return last.status === 'done' ? EXIT.success : EXIT.incomplete
}

function parseFilter({ values }: CommandContext): CancelRequest {
  const { task, tag: tags = [] } = values
  const queue = requireValue('--queue QUEUE', values.queue)
  const olderThan = parseDuration('--older-than', values['older-than'])
  const [tag] = tags
  if (tags.length > 1) throw new UsageError('cancel accepts a single --tag')
  return {
    queue,
    ...(task !== undefined && { task }),
    ...(tag !== undefined && { tag }),
    ...(olderThan !== undefined && { olderThan }),
  }
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

/** Returns the cancellation once every matching task has ended or the time is up. `until` is in ms on the monotonic clock. */
async function waitUntilDone(client: Client, { id }: Cancellation, until: number): Promise<Cancellation> {
  for (;;) {
    const cancellation = await client.cancellation(id)
    const remainingMs = until - performance.now()
    if (cancellation.status === 'done' || remainingMs <= 0) return cancellation
    await sleep(Math.min(POLL_MS, remainingMs))
  }
}

/** Cancels each id, even if the API has rejected an earlier one. Returns the highest exit code. */
async function cancelByIds({ positionals, values, connect, out, by, reportError }: CommandContext): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const client = connect()
  const options = { ...(wait !== undefined && { wait }), ...(by !== undefined && { by }) }
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
