// bullpen show: shows a task, either now or once it has ended.
import { parseDuration } from '../arguments/option-values.ts'
import { WHILE_WAITING } from '../connection.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { taskLines } from '../output/tasks/task-text.ts'
import type { CommandContext } from './command-context.ts'
import { MAX_WAIT, waitForTask } from './wait-for-task.ts'

export async function show({ positionals: [id = ''], values, connect, out }: CommandContext): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, MAX_WAIT)
  const client = connect()
  if (wait !== undefined) return await waitForTask(connect(WHILE_WAITING), id, wait, out)
  const task = await client.task(id)
  await out.answer(task, (layout) => taskLines(task, layout))
  return EXIT.success
}
