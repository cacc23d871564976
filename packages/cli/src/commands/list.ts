// bullpen list: prints the tasks of a queue that have a given status, as the pages arrive.
import type { TaskView } from '@bullpen/contract'
import { PAGINATION } from '@bullpen/contract/internal'
import { parseCount, parseStatus, requireValue } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Layout } from '../output/columns.ts'
import { count, plain } from '../output/format.ts'
import { listLine } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'

export async function list(context: CommandContext): Promise<ExitCode> {
  const { values, connect } = context
  const queue = requireValue('--queue QUEUE', values.queue)
  const status = parseStatus(values.status)
  return await printTasks(context, {
    tasks: (pageSize) => connect().list({ queue, status, pageSize }),
    line: listLine,
    none: `no ${status} tasks in ${plain(queue)}`,
  })
}

interface Listing {
  readonly tasks: (pageSize: number) => AsyncIterable<TaskView>
  readonly line: (task: TaskView, layout: Layout) => string
  /** What is said if there are no tasks. */
  readonly none: string
}

/** Prints the tasks, at most --limit of them unless --all is given. */
export async function printTasks({ values, out }: CommandContext, { tasks, line, none }: Listing): Promise<ExitCode> {
  if (values.all && values.limit !== undefined) throw new UsageError('--all and --limit cannot be combined')
  const limit = values.all
    ? Number.POSITIVE_INFINITY
    : parseCount('--limit', values.limit ?? String(PAGINATION.default))
  let shown = 0
  for await (const task of tasks(Math.min(limit, PAGINATION.max))) {
    shown += 1
    const readerLeft = !(await out.answer(task, (layout) => [line(task, layout)]))
    if (readerLeft) break
    if (shown === limit) {
      out.remark(
        `stopped after ${count(limit, 'task')}; there may be more, so use --all or a higher --limit to see them`,
      )
      break
    }
  }
  if (shown === 0) out.remark(none)
  return EXIT.success
}
