// The names of things in Redis: one place, so that every process agrees on them.

/** BullMQ's key prefix for a queue: a hash tag, so that in a Redis Cluster each queue has one shard and all its keys there. */
export function prefixOf(namespace: string, queue: string): string {
  return `{${namespace}.${queue}}`
}

/** BullMQ's keys of one queue that are read without going through its API. */
export function queueKeys(namespace: string, queue: string) {
  const base = `${prefixOf(namespace, queue)}:${queue}`
  return {
    /** BullMQ's keys of the queue begin with it. */
    base: `${base}:`,
    job: (id: string) => `${base}:${id}`,
    lock: (id: string) => `${base}:${id}:lock`,
    wait: `${base}:wait`,
    active: `${base}:active`,
    prioritized: `${base}:prioritized`,
    delayed: `${base}:delayed`,
    completed: `${base}:completed`,
    failed: `${base}:failed`,
    events: `${base}:events`,
    /** Bullpen's own: ids by when they expire unless they have been started. */
    expiries: `${base}:expiries`,
    /** Bullpen's own: ids of running tasks that are to be cancelled. */
    cancels: `${base}:cancels`,
    /** Bullpen's own: a hash, the cancel rules that may cover tasks, by id. */
    cancelRules: `${base}:cancel-rules`,
    /** Bullpen's own: when each feed last asked for the rules. */
    cancelFeeds: `${base}:cancel-feeds`,
    /** Bullpen's own: which feeds know a rule; for some seconds. */
    cancelKnown: (id: string) => `${base}:cancel-known:${id}`,
    /** Bullpen's own: a hash, what a rule has come to; kept for a day after it is done. */
    cancelProgress: (id: string) => `${base}:cancel-progress:${id}`,
    /** Bullpen's own: whose janitor goes through the queue. */
    cancelJanitor: `${base}:cancel-janitor`,
    /** A channel: there is a new cancel rule. */
    cancelChannel: `${base}:cancel-channel`,
    /** A channel: the id of a task that is to be cancelled. */
    control: `${base}:control`,
  }
}

export type QueueKeys = ReturnType<typeof queueKeys>
