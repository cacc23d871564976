// Where things are: the addresses that answers and the board link to.
import type { TaskStatus } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'

export function taskPath(id: string): string {
  return `/v1/tasks/${id}`
}

export function linksOf(id: string, queue: string, status: TaskStatus) {
  return {
    self: taskPath(id),
    wait: `${taskPath(id)}?wait=${MAX_WAIT_S}`,
    queue: `/v1/tasks?queue=${queue}&status=${status}`,
  }
}
