// Defines which names task definitions may have.

/**
 * A letter followed by letters, digits, dots, hyphens and underscores, such as `email.welcome`, `send-email` or `sendWelcome`. At most 100
 * characters. Names that differ in case are the names of different tasks.
 */
export type TaskName = string

export const MAX_TASK_NAME_LENGTH = 100
export const TASK_NAME_RULE = `expected a letter followed by letters, digits, dots, hyphens and underscores, at most ${MAX_TASK_NAME_LENGTH} characters, such as 'email.welcome'`

const NAME = /^[A-Za-z][\w.-]*$/

export function isTaskName(name: unknown): name is TaskName {
  return typeof name === 'string' && NAME.test(name) && name.length <= MAX_TASK_NAME_LENGTH
}
