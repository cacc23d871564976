// Names the keys that BullMQ's scripts use for a queue.

/** Returns the keys of a queue. `base` is the queue's prefix and name, separated by a colon. */
export function bullmqKeys(base: string) {
  return {
    /** The prefix of all the queue's other keys. */
    base: `${base}:`,
    job: (id: string) => `${base}:${id}`,
    /** String: the lock of a job that an unattached Worker runs. Others are in hashes (../store/lua/includes/task/lock.lua). */
    lock: (id: string) => `${base}:${id}:lock`,
    /** List: the lines that a job's processor has logged. */
    logs: (id: string) => `${base}:${id}:logs`,
    /** Of a job with children, which only a team's own flows have: the keys of the children that have not ended. */
    dependencies: (id: string) => `${base}:${id}:dependencies`,
    /** The results of the job's completed children. */
    processed: (id: string) => `${base}:${id}:processed`,
    /** The errors of the children whose failure the job ignores. */
    ignoredFailures: (id: string) => `${base}:${id}:failed`,
    /** The children whose failure has failed the job. */
    unsuccessful: (id: string) => `${base}:${id}:unsuccessful`,
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
    /** Set: the active tasks that the last check for lost jobs of a Worker that was not attached has marked. */
    stalled: `${base}:stalled`,
    /** List: not in use since BullMQ 6. */
    paused: `${base}:paused`,
    /** Sorted set: job schedulers. Only a team's own queue may have them. */
    repeat: `${base}:repeat`,
    /** Hash: a job scheduler. */
    scheduler: (name: string) => `${base}:repeat:${name}`,
    /** String: how many tasks have started in the current window of the rate limit. */
    limiter: `${base}:limiter`,
    /** String: the last number that BullMQ has given to a job that was added without an id. */
    id: `${base}:id`,
    /** String: the counter by which BullMQ orders the jobs of one priority. */
    pc: `${base}:pc`,
    /** String: exists for the interval between two of the checks for lost jobs of a Worker that was not attached. */
    stalledCheck: `${base}:stalled-check`,
    /** String: the job that has this deduplication id. */
    deduplication: (id: string) => `${base}:de:${id}`,
    /** Hash: the job to add when the job that has this deduplication id ends. */
    deduplicationNext: (id: string) => `${base}:dn:${id}`,
    /** Hashes and lists: BullMQ's own counts of ended jobs by minute, which a Worker's option `metrics` turns on. */
    metricsCompleted: `${base}:metrics:completed`,
    metricsCompletedData: `${base}:metrics:completed:data`,
    metricsFailed: `${base}:metrics:failed`,
    metricsFailedData: `${base}:metrics:failed:data`,
  }
}
