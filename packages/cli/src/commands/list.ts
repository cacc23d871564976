// bullpen list: prints the tasks of a queue that have a given status, as the pages arrive.
import { PAGINATION } from '@bullpen/contract/internal'
import { parseCount, parseStatus, requireValue } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { count, plain } from '../output/format.ts'
import { listLine } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'

export async function list({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const queue = requireValue('--queue QUEUE', values.queue)
  const status = parseStatus(values.status)
  if (values.all && values.limit !== undefined) throw new UsageError('--all and --limit cannot be combined')
  const limit = values.all
    ? Number.POSITIVE_INFINITY
    : parseCount('--limit', values.limit ?? String(PAGINATION.default))
  let shown = 0
  for await (const task of connect().list({ queue, status, pageSize: Math.min(limit, PAGINATION.max) })) {
    shown += 1
    const readerLeft = !(await out.answer(task, (layout) => [listLine(task, layout)]))
    if (readerLeft) break
    if (shown === limit) {
      out.remark(
        `stopped after ${count(limit, 'task')}; there may be more, so use --all or a higher --limit to see them`,
      )
      break
    }
  }
  if (shown === 0) out.remark(`no ${status} tasks in ${plain(queue)}`)
  return EXIT.success
}
