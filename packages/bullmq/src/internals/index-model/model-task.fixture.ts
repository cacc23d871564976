// Creates the tasks of the models.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { QUEUE, task } from './worker.fixture.ts'

/** Returns a task with the input `n` that can be enqueued. */
export function modelTask(n: number, given: Partial<NewTask> = {}): NewTask {
  const enqueuedAt = Date.now()
  const id = createTaskId(QUEUE, enqueuedAt, randomBytes(10))
  return { ...newTask(task, { n }, {}, { id, enqueuedAt, correlationId: undefined }), ...given }
}
