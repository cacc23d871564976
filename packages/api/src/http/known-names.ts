// Checks the queues and the tasks that a request names against the catalogue.
import { BullpenError, type Catalogue, type TaskId } from '@bullpen/contract'
import { readTaskId, suggestion, taskId } from '@bullpen/contract/internal'
import { taskNotFound } from '@bullpen/engine/internal'

/** Suggests the nearest name. */
export function queueNotFound(name: string, known: readonly string[]): BullpenError {
  const shown = name.slice(0, 100)
  const hint = suggestion(shown, known) || `; the queues are ${known.join(', ')}`
  return new BullpenError('queue_not_found', `unknown queue ${JSON.stringify(shown)}${hint}`)
}

/** Returns all queues, or only the given one. @throws BullpenError `queue_not_found`. */
export function knownQueues({ queues }: Pick<Catalogue, 'queues'>, queue: string | undefined): readonly string[] {
  if (queue === undefined) return queues
  if (!queues.includes(queue)) throw queueNotFound(queue, queues)
  return [queue]
}

/** Returns the id. @throws BullpenError `task_not_found` if it is not an id, or if the catalogue does not have its queue. */
export function knownTaskId({ queues }: Pick<Catalogue, 'queues'>, text: string): TaskId {
  const id = taskId(text)
  if (!queues.includes(readTaskId(id)?.queue ?? '')) throw taskNotFound(id)
  return id
}
