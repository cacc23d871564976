// Defines what Bullpen adds to one of BullMQ's scripts (composed-scripts.ts).
export interface Steps {
  /** The names of the arguments that Bullpen adds to BullMQ's. Each is '' unless the caller sets it. */
  readonly extra: readonly string[]
  /**
   * The name of one more argument, which is a JSON array. It comes after all others, and only if there is one, so that nothing
   * is sent for a feature that the queue does not use.
   */
  readonly last?: string
  /** Changes the text of BullMQ's script. */
  readonly adapt?: (text: string) => string
  readonly before?: string
  /** Runs after BullMQ's script, whose return value is in `answer`. */
  readonly after?: string
}

/**
 * If BullMQ's script returns a negative number, it has refused the operation and has not moved the job. However, if it returns -3
 * (the job is not active), it may already have released the lock and stored the job's fields.
 */
export const SUCCEEDED = `type(answer) ~= 'number' or answer >= 0`
