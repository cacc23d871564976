// The names of Bullpen's keys and channels in Redis, and of the BullMQ keys that Bullpen reads directly.

/** Stored in every namespace. Raise it when stored data changes so that an older or newer Bullpen would misread it. */
export const SCHEMA_VERSION = 2

/** The schema version that a namespace was written with. */
export function schemaKey(namespace: string): string {
  return `{${namespace}}:schema`
}

/** BullMQ's key prefix for a queue. It is a hash tag: in a Redis Cluster all keys of a queue are on one shard. */
export function prefixOf(namespace: string, queue: string): string {
  return `{${namespace}.${queue}}`
}

/** The keys of one queue. */
export function queueKeys(namespace: string, queue: string) {
  const base = `${prefixOf(namespace, queue)}:${queue}`
  return {
    // BullMQ's own
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
    /** Stream: BullMQ's events. */
    events: `${base}:events`,
    /** Hash: settings of the whole queue, such as pause, concurrency and rate limit. */
    meta: `${base}:meta`,
    /** Sorted set: wakes workers that wait for a task. */
    marker: `${base}:marker`,
    /** How many tasks have started in the current window of the rate limit. */
    limiter: `${base}:limiter`,

    // Bullpen's own
    /** Hash: the drain of the queue's whole fleet, and the sequence number of the last command for each setting. */
    settings: `${base}:settings`,
    /** Sorted set: ids of tasks by when they expire unless started. */
    expiries: `${base}:expiries`,
    /** Hash: for each running task that is to be cancelled, who asked. */
    cancelling: `${base}:cancelling`,
    /** Hash: the cancel rules that may match tasks, by id. */
    cancelRules: `${base}:cancel-rules`,
    /** Sorted set: consumers by when they last read the cancel rules. */
    cancelConsumers: `${base}:cancel-consumers`,
    /** Set: the consumers that know a rule. Kept for some seconds. */
    cancelKnown: (id: string) => `${base}:cancel-known:${id}`,
    /** Hash: how far a cancel rule has come. Kept for a day after it is done. */
    cancelProgress: (id: string) => `${base}:cancel-progress:${id}`,
    /** The process whose bulk canceller works on the queue. */
    bulkCanceller: `${base}:bulk-canceller`,
    /** Channel: there is a new cancel rule. */
    cancelRulesChannel: `${base}:cancel-rules-channel`,
    /** Channel: the id of a task that is to be cancelled. */
    cancelChannel: `${base}:cancel-channel`,
  }
}

export type QueueKeys = ReturnType<typeof queueKeys>

/** The keys of the fleet. They share one hash tag, so one script may change all of them. */
export function fleetKeys(namespace: string) {
  const base = `{${namespace}}:fleet`
  return {
    /** The prefix of all other keys of the fleet. Scripts build the names of inboxes and commands from it. */
    base: `${base}:`,
    /** Sorted set: worker ids by their last heartbeat. */
    heartbeats: `${base}:heartbeats`,
    /** Hash: the status of a worker. */
    worker: (id: string) => `${base}:worker:${id}`,
    /** Sorted set: ids of the commands that a worker has not answered, in order. */
    inbox: (id: string) => `${base}:inbox:${id}`,
    /** Hash: a command with its answers. */
    command: (id: string) => `${base}:command:${id}`,
    /** Sorted set: ids of all commands, in order. */
    commands: `${base}:commands`,
    /** Sorted set: ids of the commands whose queue settings may not have been applied. */
    unapplied: `${base}:unapplied`,
    /** Channel: a worker or queue that a command or setting concerns. */
    notifications: `${base}:notifications`,
    /** Channel: the id of a command that was answered. */
    answers: `${base}:answers`,
  }
}

export type FleetKeys = ReturnType<typeof fleetKeys>

/** Keys that only Bullpen 0.1.0 wrote: each of them proves that a namespace has schema 1. */
export function legacyKeys(namespace: string, queue: string) {
  const base = `${prefixOf(namespace, queue)}:${queue}`
  return { fleet: `{${namespace}}:fleet:beats`, queue: [`${base}:switches`, `${base}:cancel-feeds`] as const }
}
