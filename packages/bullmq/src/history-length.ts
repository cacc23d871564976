// How many ends are kept with a task.

/** Older ones are dropped. A success is stored elsewhere, and counts. */
export const HISTORY_LENGTH = 10
