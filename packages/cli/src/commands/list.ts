// bullpen list: the tasks of a queue in one status, written as they come.
import { PAGE } from '@bullpen/contract/internal'
import { countIn, presentIn, statusIn } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { listLine } from '../output/task-text.ts'
import type { CommandContext } from './command-context.ts'

export async function list({ values, client, out }: CommandContext): Promise<ExitCode> {
  const queue = presentIn('--queue QUEUE', values.queue)
  const status = statusIn(values.status)
  if (values.all && values.limit !== undefined) throw new UsageError('--all and --limit contradict each other')
  const most = values.all ? Number.POSITIVE_INFINITY : countIn('--limit', values.limit ?? String(PAGE.default))
  let shown = 0
  for await (const task of client().list({ queue, status, pageSize: Math.min(most, PAGE.max) })) {
    shown += 1
    if (!(await out.answer(task, (look) => [listLine(task, look)]))) break
    if (shown === most) {
      out.remark(`${most} shown; there may be more: --all, or a higher --limit`)
      break
    }
  }
  return EXIT.done
}
