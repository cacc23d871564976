// Names the keys that BullMQ's scripts use for a queue. The table ../orphans/rows/bullmq-rows.ts says what each of them holds.

/** Returns the keys of a queue. `base` is the queue's prefix and name, separated by a colon. */
export function bullmqKeys(base: string) {
  return {
    /** The prefix of all the queue's other keys. */
    base: `${base}:`,
    job: (id: string) => `${base}:${id}`,
    /** String: the lock of a job that an unattached Worker runs. Others are in hashes (../store/lua/includes/task/lock.lua). */
    lock: (id: string) => `${base}:${id}:lock`,
    logs: (id: string) => `${base}:${id}:logs`,
    dependencies: (id: string) => `${base}:${id}:dependencies`,
    processed: (id: string) => `${base}:${id}:processed`,
    ignoredFailures: (id: string) => `${base}:${id}:failed`,
    unsuccessful: (id: string) => `${base}:${id}:unsuccessful`,
    wait: `${base}:wait`,
    active: `${base}:active`,
    prioritized: `${base}:prioritized`,
    delayed: `${base}:delayed`,
    completed: `${base}:completed`,
    failed: `${base}:failed`,
    waitingChildren: `${base}:waiting-children`,
    events: `${base}:events`,
    meta: `${base}:meta`,
    marker: `${base}:marker`,
    stalled: `${base}:stalled`,
    paused: `${base}:paused`,
    repeat: `${base}:repeat`,
    scheduler: (name: string) => `${base}:repeat:${name}`,
    limiter: `${base}:limiter`,
    id: `${base}:id`,
    pc: `${base}:pc`,
    stalledCheck: `${base}:stalled-check`,
    deduplication: (id: string) => `${base}:de:${id}`,
    deduplicationNext: (id: string) => `${base}:dn:${id}`,
    metricsCompleted: `${base}:metrics:completed`,
    metricsCompletedData: `${base}:metrics:completed:data`,
    metricsFailed: `${base}:metrics:failed`,
    metricsFailedData: `${base}:metrics:failed:data`,
  }
}
