// Defines what is known of the waiting tasks of a queue without reading all of them.

/** All as of the same moment. Times are in ms since 1970, on the store's clock. */
export interface QueueHead {
  /**
   * The waiting task that has been ready for the longest time, whether or not it could start. Undefined if no task is waiting. A task with
   * a priority that waits behind others is not considered.
   */
  readonly oldest:
    | {
        readonly id: string
        /** The name of its definition. */
        readonly task: string
        readonly enqueuedAt: number
        readonly readyAt: number
      }
    | undefined
  /** Since when the waiting task that starts next has been ready. Undefined if no waiting task could start, however many slots are free. */
  readonly nextReadyAt: number | undefined
  /** How many waiting tasks could not start, however many slots are free. A pause and a drain do not count. */
  readonly blockedTasks: number
  /**
   * The task among these that has been ready for the longest time. Undefined if there is none. A task that waits behind
   * others of its lane is not considered.
   */
  readonly oldestBlocked: { readonly id: string; readonly readyAt: number } | undefined
  /** Whether a command has paused the queue. */
  readonly isPaused: boolean
  /** Whether a command drains the queue, or has drained it. */
  readonly isDraining: boolean
  /** The BullMQ Workers without Bullpen's backend that use the queue. Undefined if there are none. */
  readonly unattached?: UnattachedWorkers | undefined
}

/** BullMQ Workers that use a queue although they do not run Bullpen's scripts. Times are in ms since 1970. */
export interface UnattachedWorkers {
  readonly since: number
  /** When the leader last saw a trace of them. */
  readonly seenAt: number
  /** The name, if it has one, and the address of each. Empty if they are not known. */
  readonly workers: readonly string[]
  /** How many tasks they have held at once at most, and the ids of some of these. */
  readonly tasks: number
  readonly ids: readonly string[]
}
