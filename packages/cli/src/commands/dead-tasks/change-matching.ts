// bullpen dead retry --queue and bullpen dead delete --queue: retry or delete all dead tasks of a queue that match a filter.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { type DeadTaskAction, type DeadTaskPreview, type DeadTaskRequest, milliseconds } from '@bullpen/contract'
import { DEAD_TASK_RATE } from '@bullpen/contract/internal'
import { deadFilter } from '../../arguments/dead-filter.ts'
import { parseCount, parseDuration } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { count, plain } from '../../output/format.ts'
import { deadRequestLine } from '../../output/tasks/dead-text.ts'
import type { CommandContext } from '../command-context.ts'
import { MAX_WAIT } from '../wait-for-task.ts'

const POLL_MS = 500

export async function changeByFilter(context: CommandContext, action: DeadTaskAction): Promise<ExitCode> {
  const { values, connect, out, by } = context
  if (values.input !== undefined) throw new UsageError('--input requires an ID')
  if (values['to-queue'] !== undefined) throw new UsageError('--to-queue requires an ID')
  const filter = deadFilter(values)
  const rate = values.rate === undefined ? undefined : parseCount('--rate', values.rate, DEAD_TASK_RATE.max)
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  const mayAsk = context.isInteractive && !out.json
  if (!values['dry-run'] && !values.yes && !mayAsk) {
    throw new UsageError(
      `dead ${action} --queue asks for confirmation, which requires a terminal; add --yes to confirm, or --dry-run to count the tasks`,
    )
  }
  const client = connect()
  if (values['dry-run']) {
    const preview = await client.previewDead(filter)
    await out.answer(preview, () => [`would ${action} ${matchText(preview)}`])
    return EXIT.success
  }
  if (!values.yes) {
    const preview = await client.previewDead(filter)
    if (preview.exact && preview.matching === 0) {
      out.remark(`nothing to ${action}: ${matchText(preview)}`)
      return EXIT.success
    }
    const question = `${action === 'retry' ? 'Retry' : 'Delete'} ${matchText(preview)}?`
    if (!(await context.confirm(question))) {
      out.remark('nothing was changed')
      return EXIT.incomplete
    }
  }
  const afterCompensation = values['after-compensation']
  if (afterCompensation && action === 'delete') throw new UsageError('dead delete does not accept --after-compensation')
  const request = {
    ...filter,
    ...(rate !== undefined && { rate }),
    ...(by !== undefined && { by }),
    ...(afterCompensation && { afterCompensation }),
  }
  const stored = await (action === 'retry' ? client.retryDead(request) : client.deleteDead(request))
  const progress = `to see its progress, run: bullpen dead requests ${stored.id}`
  await out.answer(stored, () => [deadRequestLine(stored)])
  if (wait === undefined) {
    out.remark(progress)
    return EXIT.success
  }
  const last = await waitUntilDone(connect(WHILE_WAITING), stored, performance.now() + milliseconds(wait))
  await out.answer(last, () => [deadRequestLine(last)])
  if (last.status === 'done') return EXIT.success
  if (last.status === 'stopped') return EXIT.incomplete
  out.remark(`the time is up, and the request continues; ${progress}`)
  return EXIT.incomplete
}

/** Describes the matching tasks, such as `12 dead tasks of email`. */
function matchText({ queue, matching, exact }: DeadTaskPreview): string {
  return plain(`${exact ? '' : 'at least '}${count(matching, 'dead task')} of ${queue}`)
}

/** Returns the request once it is done or stopped, or the time is up. `until` is in ms on the monotonic clock. */
async function waitUntilDone(client: Client, { id }: DeadTaskRequest, until: number): Promise<DeadTaskRequest> {
  for (;;) {
    const request = await client.deadTaskRequest(id)
    const remainingMs = until - performance.now()
    if (request.status !== 'pending' || remainingMs <= 0) return request
    await sleep(Math.min(POLL_MS, remainingMs))
  }
}
