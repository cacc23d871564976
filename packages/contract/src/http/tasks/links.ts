// Builds tasks' paths for the links in responses and on the board.

export function taskPath(id: string): string {
  return `/v1/tasks/${id}`
}

export function taskLinks(id: string) {
  return { self: taskPath(id), cancel: `${taskPath(id)}/cancel` }
}
