// Defines what Bullpen adds to one of BullMQ's scripts (composed-scripts.ts).
export interface Steps {
  /** The names of the arguments that Bullpen adds to BullMQ's. Each is '' unless the caller sets it. */
  readonly extra: readonly string[]
  readonly before?: string
  /** Runs after BullMQ's script, whose return value is in `answer`. */
  readonly after?: string
}
