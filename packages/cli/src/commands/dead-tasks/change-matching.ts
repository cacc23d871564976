// bullpen dead retry --queue and bullpen dead delete --queue: retry or delete all dead tasks of a queue that match a filter.
import { type DeadTaskAction, type DeadTaskPreview, milliseconds } from '@bullpen/contract'
import { DEAD_TASK_RATE } from '@bullpen/contract/internal'
import { deadFilter } from '../../arguments/dead-filter.ts'
import { parseCount, parseDuration, withoutUndefined } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { WHILE_WAITING } from '../../connection.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { count, plain } from '../../output/format.ts'
import { deadRequestLine } from '../../output/tasks/dead-text.ts'
import type { CommandContext } from '../command-context.ts'
import { confirmChange, pollUntil, requireConsent } from '../filtered-change.ts'
import { MAX_WAIT } from '../wait-for-task.ts'

export async function changeByFilter(context: CommandContext, action: DeadTaskAction): Promise<ExitCode> {
  const { values, connect, out, by } = context
  if (values.input !== undefined) throw new UsageError('--input requires an ID')
  if (values['to-queue'] !== undefined) throw new UsageError('--to-queue requires an ID')
  const filter = deadFilter(values)
  const rate = parseCount('--rate', values.rate, DEAD_TASK_RATE.max)
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  requireConsent(`dead ${action}`, context)
  const client = connect()
  const preview = () => client.previewDead(filter)
  const code = await confirmChange(context, { verb: action, preview, describe: matchText })
  if (code !== undefined) return code
  const afterCompensation = values['after-compensation']
  if (afterCompensation && action === 'delete') throw new UsageError('dead delete does not accept --after-compensation')
  const request = withoutUndefined({ ...filter, rate, by, afterCompensation: afterCompensation || undefined })
  const stored = await (action === 'retry' ? client.retryDead(request) : client.deleteDead(request))
  const progress = `to see its progress, run: bullpen dead requests ${stored.id}`
  await out.answer(stored, () => [deadRequestLine(stored)])
  if (wait === undefined) {
    out.remark(progress)
    return EXIT.success
  }
  const until = performance.now() + milliseconds(wait)
  const waiting = connect(WHILE_WAITING)
  const last = await pollUntil(() => waiting.deadTaskRequest(stored.id), {
    isOver: ({ status }) => status !== 'pending',
    until,
  })
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
