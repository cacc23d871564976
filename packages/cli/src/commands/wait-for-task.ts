// Waits for a task to end and prints it.
import { type Client, ResultTimeoutError } from '@bullpen/client'
import type { Duration } from '@bullpen/contract'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { taskLines } from '../output/tasks/task-text.ts'

/** The longest wait. Node's timers overflow after 24 days. */
export const MAX_WAIT: Duration = '1d'

/** Prints the task once it has ended or the time is up. The exit code shows whether the task completed. */
export async function waitForTask(client: Client, id: string, wait: Duration, out: Output): Promise<ExitCode> {
  const task = await endedOrCurrent(
    () => client.waitUntilFinished(id, { timeout: wait }),
    () => client.task(id),
  )
  await out.answer(task, (layout) => taskLines(task, layout))
  return task.status === 'completed' ? EXIT.success : EXIT.incomplete
}

/** Returns what has ended, or its current state if the time is up before. */
export async function endedOrCurrent<T>(wait: () => Promise<T>, current: () => Promise<T>): Promise<T> {
  try {
    return await wait()
  } catch (error) {
    if (!(error instanceof ResultTimeoutError)) throw error
    return await current()
  }
}
