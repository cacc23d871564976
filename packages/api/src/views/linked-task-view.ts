// Converts a task to the form that the API returns, with a link to the task's page on the board.
import type { ExplainedTask, TaskRecord, TaskView } from '@bullpen/contract'
import { taskView } from '@bullpen/contract/internal'
import type { ApiContext } from '../http/context.ts'

/** Returns a function that converts tasks. The link is left out if the API does not serve the board. */
export function linkedTaskView({
  hasBoard,
}: Pick<ApiContext, 'hasBoard'>): (record: TaskRecord | ExplainedTask) => TaskView {
  if (!hasBoard) return taskView
  return (record) => {
    const view = taskView(record)
    return { ...view, links: { ...view.links, board: boardPath(record) } }
  }
}

function boardPath({ queue, id }: Pick<TaskRecord, 'queue' | 'id'>): string {
  return `/board/queue/${encodeURIComponent(queue)}/${id}`
}
