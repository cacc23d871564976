// The names of the keys that BullMQ's scripts use for a queue.

/** `base` is the prefix of the queue and its name, separated by a colon. */
export function bullmqKeys(base: string) {
  return {
    /** The prefix of all other keys of the queue. */
    base: `${base}:`,
    job: (id: string) => `${base}:${id}`,
    lock: (id: string) => `${base}:${id}:lock`,
    wait: `${base}:wait`,
    active: `${base}:active`,
    prioritized: `${base}:prioritized`,
    delayed: `${base}:delayed`,
    completed: `${base}:completed`,
    failed: `${base}:failed`,
    /** Sorted set: jobs with children that have not ended, which a team's own flows may have. */
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
    /** Sorted set: job schedulers, which a team's own queue may have. */
    repeat: `${base}:repeat`,
    /** String: how many tasks have started in the current window of the rate limit. */
    limiter: `${base}:limiter`,
  }
}
