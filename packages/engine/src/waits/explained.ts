// Adds to a task why it does not run.
import type { ExplainedTask, TaskRecord } from '@bullpen/contract'
import type { Broker } from '../ports/broker/broker.ts'

/** Returns the task with what it waits for. Only a view of a single task needs this, and a task that runs or has ended costs nothing. */
export async function explained(broker: Pick<Broker, 'waitsFor'>, task: TaskRecord): Promise<ExplainedTask> {
  const waitsFor = await broker.waitsFor(task)
  return waitsFor === undefined ? task : { ...task, waitsFor }
}
