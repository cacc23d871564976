// Names the keys that BullMQ's scripts use for a queue.

/** Returns the keys of a queue. `base` is the queue's prefix and name, separated by a colon. */
export function bullmqKeys(base: string) {
  return {
    /** The prefix of all the queue's other keys. */
    base: `${base}:`,
    job: (id: string) => `${base}:${id}`,
    lock: (id: string) => `${base}:${id}:lock`,
    wait: `${base}:wait`,
    active: `${base}:active`,
    prioritized: `${base}:prioritized`,
    delayed: `${base}:delayed`,
    completed: `${base}:completed`,
    failed: `${base}:failed`,
    /** Sorted set: jobs with children that have not ended. Only a team's own flows have such jobs. */
    waitingChildren: `${base}:waiting-children`,
    /** Stream: BullMQ's events. */
    events: `${base}:events`,
    /** Hash: settings of the whole queue, such as pause, concurrency and rate limit. */
    meta: `${base}:meta`,
    /** Sorted set: the markers that wake workers waiting for a task. */
    marker: `${base}:marker`,
    /** Set: active tasks that may have lost their worker. */
    stalled: `${base}:stalled`,
    /** List: not in use since BullMQ 6. */
    paused: `${base}:paused`,
    /** Sorted set: job schedulers. Only a team's own queue may have them. */
    repeat: `${base}:repeat`,
    /** String: how many tasks have started in the current window of the rate limit. */
    limiter: `${base}:limiter`,
  }
}
