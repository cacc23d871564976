// Adds to a task's view why the task does not run.
import type { ExplainedTask, TaskRecord } from '@bullpen/contract'
import type { Broker } from '../ports/broker/broker.ts'

/** Returns the task with what it waits for. Only views of a single task need this. It costs nothing if the task runs or has ended. */
export async function explained(broker: Pick<Broker, 'waitsFor'>, task: TaskRecord): Promise<ExplainedTask> {
  const waitsFor = await broker.waitsFor(task)
  return waitsFor === undefined ? task : { ...task, waitsFor }
}
