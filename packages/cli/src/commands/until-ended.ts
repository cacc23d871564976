// Waits for a task's end and shows what has become of it.
import type { Client } from '@bullpen/client'
import type { Duration, TaskView } from '@bullpen/contract'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { taskLines } from '../output/task-text.ts'

/** Node's timers end at 24 days; a wait on a command line long before. */
export const LONGEST_WAIT: Duration = '1d'

/** Shows the task when it has ended or the time is up. The exit code says whether it is completed. */
export async function untilEnded(client: Client, id: string, wait: Duration, out: Output): Promise<ExitCode> {
  const task = await asItStands(client, id, wait)
  await out.answer(task, (look) => taskLines(task, look))
  return task.status === 'completed' ? EXIT.done : EXIT.otherwise
}

async function asItStands(client: Client, id: string, timeout: Duration): Promise<TaskView> {
  try {
    return await client.waitUntilFinished(undefined, id, { timeout })
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'TimeoutError')) throw error
    return await client.task(undefined, id)
  }
}
