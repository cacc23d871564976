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
    /** BullMQ's own: what holds for the whole queue, such as a pause and the limits. */
    meta: `${base}:meta`,
    /** BullMQ's own: wakes workers that wait for a task. */
    marker: `${base}:marker`,
    /** BullMQ's own: how many have started in this time of its rate limit. */
    limiter: `${base}:limiter`,
    /** Bullpen's own: the drain of its fleet, and which command came last for each switch. */
    switches: `${base}:switches`,
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

/** What is known of the fleet: one hash tag, so that one script may change all of it. */
export function fleetKeys(namespace: string) {
  const base = `{${namespace}}:fleet`
  return {
    /** Every other key of these begins with it: scripts make the names of inboxes and commands. */
    base: `${base}:`,
    /** Process ids by their last sign of life. */
    beats: `${base}:beats`,
    /** What a process tells of itself. */
    worker: (id: string) => `${base}:worker:${id}`,
    /** Ids of the commands that a process has not answered, by when they came. */
    inbox: (id: string) => `${base}:inbox:${id}`,
    /** One command with its answers. */
    command: (id: string) => `${base}:command:${id}`,
    /** Ids of all commands, by when they came. */
    commands: `${base}:commands`,
    /** Ids of those whose queue's switch is not known to be set yet. */
    unset: `${base}:unset`,
    /** A channel: whom a command or a switch concerns. */
    wakes: `${base}:wakes`,
    /** A channel: the id of a command that was answered. */
    answers: `${base}:answers`,
  }
}

export type FleetKeys = ReturnType<typeof fleetKeys>
