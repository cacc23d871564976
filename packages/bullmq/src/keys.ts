// Names Bullpen's keys and channels in Redis, alongside BullMQ's keys.
import { bullmqKeys } from './internals/bullmq-keys.ts'

/** Stored in every namespace. Raise this number when stored data changes in a way that an older or newer Bullpen would misread. */
export const SCHEMA_VERSION = 3

/** Returns the key of the schema version that a namespace was written with. */
export function schemaKey(namespace: string): string {
  return `{${namespace}}:schema`
}

/**
 * Returns the keys of a namespace's leader. They share a hash tag with the schema version, so that one script can read all of
 * them.
 */
export function leaderKeys(namespace: string) {
  const base = `{${namespace}}:leader`
  return {
    schema: schemaKey(namespace),
    /** String: the process that leads. It expires if the leader does not renew it. */
    lease: `${base}:lease`,
    /** String: the fencing number of the newest leader. */
    fencing: `${base}:fencing`,
    /**
     * Hash: every queue that a producer or a consumer has opened, and its retention as JSON ('' until a consumer has opened the
     * queue).
     */
    registry: `${base}:registry`,
    /** Channel: announces a queue that has work for the leader, '' when the leader has resigned, or '.' when it renews its lease. */
    channel: `${base}:channel`,
  }
}

export type LeaderKeys = ReturnType<typeof leaderKeys>

/**
 * Returns the key of a sorted set: the producers that share the memory of a single Redis server, scored by the time at which each
 * producer last read the memory. In a cluster, each queue has its own set.
 */
export function producersKey(namespace: string): string {
  return `{${namespace}}:producers`
}

/**
 * Returns the key of a string: an API key's bucket of tokens (store/lua/includes/add/token-bucket.lua). It expires when the bucket is
 * full.
 */
export function enqueueRateKey(namespace: string, apiKeyName: string): string {
  return `{${namespace}}:enqueue-rate:${apiKeyName}`
}

/**
 * Returns the key of a sorted set: the groups that have not ended, or whose outboxes are not empty, scored by when the leader looks at
 * each of them (ms since 1970).
 */
export function groupsKey(namespace: string): string {
  return `{${namespace}}:groups`
}

/**
 * Returns the key of a hash: which definitions of schedules running processes declare, and which were stored
 * (schedules/declare-schedules.lua).
 */
export function scheduleEditionsKey(namespace: string): string {
  return `{${namespace}}:schedule-editions`
}

/** Like {@link groupsKey}, but for the runs of pipelines. */
export function runsKey(namespace: string): string {
  return `{${namespace}}:runs`
}

/** Returns the channel that announces the id of each group that has members in a further queue. */
export function groupQueuesChannel(namespace: string): string {
  return `{${namespace}}:group-queues`
}

/** Returns the channel that announces the id of each group that has ended. */
export function groupEndedChannel(namespace: string): string {
  return `{${namespace}}:group-ended`
}

/**
 * Returns the keys of a group. They share a hash tag of their own, so that the groups of a namespace are spread over the nodes of a
 * Redis Cluster. All of them expire.
 */
export function groupKeys(namespace: string, group: string) {
  const base = `{${namespace}:${group}}:`
  return {
    /** The prefix of all other keys of the group. */
    base,
    /** Hash: the group's state, settings and counts, and the names of its members' queues. */
    meta: `${base}meta`,
    /** String: for each member, three bits that say how it has ended, or 0 (groups/end-letters.ts). */
    members: `${base}members`,
    /** String: for each member, four bits with its queue's position. Missing if all members belong to one queue. */
    queues: `${base}queues`,
    /** Hash: the requests that have added members, each with the number of its first member and a digest. */
    requests: `${base}requests`,
    /** Stream: the members to enqueue, and what follows from the group's cancellation or end (outbox/outbox-entry.ts). */
    outbox: `${base}outbox`,
  }
}

export type GroupKeys = ReturnType<typeof groupKeys>

/** Returns the prefix of the channels that announce ids of pipeline runs: `credits` to sources that wait, and `ended`. */
export function runChannels(namespace: string): string {
  return `{${namespace}}:run-`
}

/** Returns the keys of a pipeline run. They share a hash tag of their own, and all of them expire. */
export function runKeys(namespace: string, run: string) {
  const base = `{${namespace}:${run}}:`
  return {
    /** The prefix of all other keys of the run. Scripts derive the names of the lists `waiting:<stage>` from it. */
    base,
    /** Hash: the run's state and its counts. */
    meta: `${base}meta`,
    /** String: the run's settings and the templates of its tasks, as JSON. */
    definition: `${base}definition`,
    /** Set: the tasks that have not ended, each as the number of its stage and its position. */
    tasks: `${base}tasks`,
    /** Hash: by task, the inputs of these tasks that are too large to be passed on. */
    inputs: `${base}inputs`,
    /** List: the items that wait for a stage, or for a batch of results, each as its position and its value. */
    waiting: (stage: string) => `${base}waiting:${stage}`,
    /** Hash: what has arrived at the end of a section before an earlier item, by the section's number and the position. */
    early: `${base}early`,
    /** List: the results that are kept for the reduction. */
    results: `${base}results`,
    /** List: the items that have failed. */
    errors: `${base}errors`,
    /** Stream: the tasks to enqueue, and the queues in which the run's tasks are to be cancelled (outbox/outbox-entry.ts). */
    outbox: `${base}outbox`,
  }
}

export type RunKeys = ReturnType<typeof runKeys>

/**
 * Returns BullMQ's key prefix for a queue. The prefix is a hash tag, so that all of a queue's keys are on one shard of a Redis
 * Cluster.
 */
export function prefixOf(namespace: string, queue: string): string {
  return `{${namespace}.${queue}}`
}

/** Returns whether this is BullMQ's key prefix for a queue in any namespace or, if the name of the queue is '', for any queue. */
export function isPrefixOf(prefix: string | undefined, queue: string): boolean {
  const [, name] = /^\{[^.:}]+\.([^}]+)\}$/.exec(prefix ?? '') ?? []
  return name !== undefined && (queue === '' || name === queue)
}

/** Returns the namespace of a key, or of the prefix of keys. A namespace has no dot and no colon in its name. */
export function namespaceOf(key: string): string {
  return /^\{([^.:}]+)/.exec(key)?.[1] ?? ''
}

/** Returns the keys of one queue: BullMQ's and Bullpen's own. */
export function queueKeys(namespace: string, queue: string) {
  const base = `${prefixOf(namespace, queue)}:${queue}`
  return {
    ...bullmqKeys(base),

    /** Sorted sets: the parts of `delayed`, with the same scores. */
    scheduled: `${base}:scheduled`,
    retrying: `${base}:retrying`,
    /** Sorted set: the tasks of `delayed` that wait for a place in quarantine, with the same scores (task-return.lua). */
    postponed: `${base}:postponed`,
    /** Sorted sets: the parts of `failed`, with the same scores. */
    dead: `${base}:dead`,
    cancelled: `${base}:cancelled`,
    expired: `${base}:expired`,
    /** Hash: the state, the code and the masked message of each kind of error, by fingerprint (store/lua/includes/end/fingerprints.lua). */
    fingerprints: `${base}:fingerprints`,
    /** Sorted set: the dead tasks with this fingerprint, with the same scores as in `dead`. */
    fingerprint: (fingerprint: string) => `${base}:fingerprint:${fingerprint}`,
    /** Hash: the requests to retry or delete dead tasks by filter that are not done, by id. */
    deadRequests: `${base}:dead-requests`,
    /** Hash: a request for dead tasks with its progress, which is kept for seven days after the request is done. */
    deadProgress: (id: string) => `${base}:dead-progress:${id}`,
    /** List: the ids of the newest 1,000 requests for dead tasks by filter, newest first. */
    deadRequestIds: `${base}:dead-request-ids`,
    /** List: the waiting tasks of this lane that have no priority (store/lua/includes/lanes/lanes.lua). */
    lane: (name: string) => `${base}:lane:${name}`,
    /** Sorted set: the waiting tasks of this lane that have a priority. */
    lanePriorities: (name: string) => `${base}:lane-priorities:${name}`,
    /** Sorted set: the lanes that have waiting tasks, in the order in which they received the first of them. */
    lanes: `${base}:lanes`,
    /** Sorted set: the lanes by their pass. The lane with the smallest pass starts the next task (store/lua/includes/lanes/turns.lua). */
    turns: `${base}:turns`,
    /**
     * Hash: how many tasks wait in lanes (`waiting`), a counter (`order`), the pass of the tasks without a lane (`pass`), and that of the
     * last turn after which a lane was blocked (`time`).
     */
    turnState: `${base}:turn-state`,
    /** Hash: the limits of all concurrency keys (`concurrency`) and of single ones (store/lua/includes/limits/key-limits.lua). */
    keyLimits: `${base}:key-limits`,
    /** Hash: the capacities of the queue's limiters, by their names (store/lua/includes/limits/limiters.lua). */
    capacities: `${base}:capacities`,
    /** Sorted set: how much of each limiter the active tasks hold. */
    inUse: `${base}:in-use`,
    /** Sorted set: the blocked lanes that wait with this need, by the pass of the turn in which they met the limit. */
    needWaiters: (need: string) => `${base}:need-waiters:${need}`,
    /** Sorted set: the needs for which lanes wait, all with the score 0. */
    waitedNeeds: `${base}:waited-needs`,
    /** Sorted set: the concurrency keys that have several lanes, by the pass that the last start of the key has reached. */
    keyPasses: `${base}:key-passes`,
    /** Sorted set: the number of active tasks of each concurrency key, if the queue has such limits. */
    activeByKey: `${base}:active-by-key`,
    /** Sorted set: the lanes whose limits allow no start, by the pass with which they take turns again. */
    blockedLanes: `${base}:blocked-lanes`,
    /**
     * Sorted set: the blocked lanes whose keys have used up their rates or are throttled, by when they may start a task
     * (store/lua/includes/lanes/blocked-lanes.lua), and the services whose breakers are not closed, by when the next fetch looks at them
     * again (store/lua/includes/limits/gates.lua).
     */
    laneTimes: `${base}:lane-times`,
    /**
     * Sorted set: the concurrency keys that a handler has throttled, by when they may start a task
     * (store/lua/includes/limits/key-limits.lua).
     */
    keyThrottles: `${base}:key-throttles`,
    /** String: until when the rate of this concurrency key is used up. Expires then. */
    keyRate: (key: string) => `${base}:key-rate:${key}`,
    /** Hash: the circuit breakers of the queue's definition, by the name of their service (breakers/stored-breaker.ts). */
    breakers: `${base}:breakers`,
    /** List: the fingerprints that have appeared and that the leader has not yet reported. */
    newFingerprints: `${base}:new-fingerprints`,
    /**
     * Hash: how many tasks were ever added (`accepted`) and deleted (`removed`), how often one was recovered from a lost worker
     * (`recovered`), how many bytes the unfinished tasks take (`bytes`), how many repairs the index and the bytes have needed
     * (`drift`), and when both were last compared with the tasks (`comparedAt`, in ms since 1970), when the active tasks of
     * concurrency keys were last counted (`countedAt`), the size of the entries in the outbox (`outboxBytes`), and how the
     * records of forwarded follow-ups are divided (`forwardedDigits`: store/lua/includes/add/forwarded.lua).
     */
    totals: `${base}:totals`,
    /**
     * Hash: the command that drains the queue's whole fleet, if any; the limits that commands have set; and for each setting, the
     * sequence number of the last command that changed it.
     */
    settings: `${base}:settings`,
    /** String: the highest fencing number of a leader that has worked on the queue. */
    leader: `${base}:leader`,
    /** Sorted set: task ids, scored by the time at which each task expires if it has not been started. */
    expiries: `${base}:expiries`,
    /** Hash: the last task that received each unique key, and until when the task has the key (store/lua/includes/add/key-owner.lua). */
    uniqueKeys: `${base}:unique-keys`,
    /**
     * Sorted set: the tasks that were deleted soon after their enqueue, by the time of the enqueue
     * (store/lua/includes/task/removed-tasks.lua).
     */
    recentlyRemoved: `${base}:recently-removed`,
    /** String: what an enqueue that waits for a replica has written (store/replicated-adds.ts). Expires after a second. */
    replicated: `${base}:replicated`,
    /** Set: the active tasks whose locks have not been renewed since the last check for lost tasks (store/lua/recover.lua). */
    unrenewed: `${base}:unrenewed`,
    /** String: exists for the interval between two of an attached Worker's checks for lost tasks (store/lua/recover.lua). */
    attachedCheck: `${base}:attached-check`,
    /**
     * String: what is known of the BullMQ Workers that use the queue and were not attached, as JSON (leader/unattached-workers.ts). Kept
     * for ten minutes after the leader has last seen one.
     */
    unattached: `${base}:unattached`,
    /** Hash: the tasks that Redis has lost after a process had acknowledged them (acknowledged/note-lost.lua). Kept for a day. */
    lostTasks: `${base}:lost-tasks`,
    /**
     * Hash: records of idempotency keys that have the same lifetime (in s) and were stored in the same period. `bucket` is the beginning
     * of their keys, and `period` the number of the period (store/lua/includes/add/idempotency.lua).
     */
    idempotency: (life: string, bucket: string, period: string) => `${base}:idempotency:${life}:${bucket}:${period}`,
    /**
     * Hash: how many records of idempotency keys there are, by the time in s since 1970 by which all of them have expired
     * (store/lua/includes/add/idempotency.lua).
     */
    idempotencyCounts: `${base}:idempotency-counts`,
    /**
     * Stream: what follows from the ends of tasks and has not been forwarded (outbox/outbox-entry.ts), each entry in a field `e`. The
     * consumer group `forwarders` records which entries a process has claimed.
     */
    outbox: `${base}:outbox`,
    /**
     * Set: the records of follow-up tasks that were forwarded to this queue in the same quarter of a day. `digest` is a part of
     * the follow-ups' digests (store/lua/includes/add/forwarded.lua).
     */
    forwarded: (quarterDay: string, digest: string) => `${base}:forwarded:${quarterDay}:${digest}`,
    /** Hash: by each API key's name, the number of its unfinished tasks that were counted when they were added. */
    apiKeyTasks: `${base}:api-key-tasks`,
    /**
     * Hash: by each API key's name, the key's token bucket, if the key has a rate in this queue
     * (store/lua/includes/add/token-bucket.lua).
     */
    apiKeyRates: `${base}:api-key-rates`,
    /** Hash: how much of a definition's retry budget is used (store/lua/includes/end/retry-budget.lua). Expires when none is used. */
    retryBudget: (task: string) => `${base}:retry-budget:${task}`,
    /** Sorted set: the tasks of a definition whose retries are held by its budget, by the beginning of each one's slot. */
    heldRetries: (task: string) => `${base}:held-retries:${task}`,
    /** Hash: the queue's schedules by name, each as a token and its record as JSON (store/lua/includes/schedule-write.lua). */
    schedules: `${base}:schedules`,
    /** Sorted set: the names of the schedules that the leader has to look at, scored by when (ms since 1970). */
    scheduleTimes: `${base}:schedule-times`,
    /** Hash: by schedule, the troubles that the leader has reported (schedules/trouble-watch.ts). Others are missing. */
    scheduleTroubles: `${base}:schedule-troubles`,
    /** Stream: what has happened to the queue's tasks (store/lua/includes/task/task-events.lua). */
    taskEvents: `${base}:task-events`,
    /** String: the number of the last batch of events that a process has sent. Kept for a minute. */
    eventBatch: (process: string) => `${base}:event-batch:${process}`,
    /** Hash: who requested the cancellation, for each running task with a pending cancellation. */
    cancelling: `${base}:cancelling`,
    /** Hash: the cancel rules that may still match tasks, by id. */
    cancelRules: `${base}:cancel-rules`,
    /** Sorted set: consumers, scored by when they last read the cancel rules. */
    cancelConsumers: `${base}:cancel-consumers`,
    /** Set: the consumers that have acknowledged a rule. Kept for a few seconds. */
    cancelKnown: (id: string) => `${base}:cancel-known:${id}`,
    /** Hash: the progress of a cancel rule, which is kept for a day after the rule is done. */
    cancelProgress: (id: string) => `${base}:cancel-progress:${id}`,
    /** Set: the tasks that have returned from `active`, or moved back, while the queue has cancel rules. */
    cancelReturned: `${base}:cancel-returned`,
    /** Hash: the `id` of the bulk canceller's current pass, and the rules that match a task in `cancelReturned`, by id. */
    cancelPass: `${base}:cancel-pass`,
    /** String: the last reply of a leader's script that has ended tasks. `caller` is the leader's process. Kept for ten minutes. */
    endReply: (caller: string) => `${base}:end-reply:${caller}`,
    /** String: the reply to a request to cancel one task. Kept for a minute. */
    cancelReply: (request: string) => `${base}:cancel-reply:${request}`,
    /** String: exists for a day after a group was cancelled, so that none of its members is added any more. */
    cancelledGroup: (group: string) => `${base}:cancelled-group:${group}`,
    /** Sorted set: in a cluster, the queue's producers, scored by the time at which each producer last read the node's memory. */
    producers: `${base}:producers`,
    /** Channel: announces that there is a new cancel rule. */
    cancelRulesChannel: `${base}:cancel-rules-channel`,
    /** Channel: announces the id of a task to cancel. */
    cancelChannel: `${base}:cancel-channel`,
  }
}

export type QueueKeys = ReturnType<typeof queueKeys>

/** Returns the fleet's keys. They share one hash tag, so that one script can change all of them. */
export function fleetKeys(namespace: string) {
  const base = `{${namespace}}:fleet`
  return {
    /** The prefix of all other keys of the fleet. Scripts derive the names of inboxes and commands from it. */
    base: `${base}:`,
    /** Sorted set: worker ids, scored by their last heartbeat. */
    heartbeats: `${base}:heartbeats`,
    /** Sorted set: the queues, scored by when a worker last reported a running pool on them. */
    served: `${base}:served`,
    /** Hash: the status of a worker. */
    worker: (id: string) => `${base}:worker:${id}`,
    /** Sorted set: ids of the commands to which a worker has not responded, in order. */
    inbox: (id: string) => `${base}:inbox:${id}`,
    /** Hash: a command and its responses. */
    command: (id: string) => `${base}:command:${id}`,
    /** Sorted set: ids of all commands, in order. */
    commands: `${base}:commands`,
    /** Sorted set: ids of the commands whose queue settings may not have been applied. */
    unapplied: `${base}:unapplied`,
    /** String: incremented after the settings of a queue have changed. */
    settingsRevision: `${base}:settings-revision`,
    /** String: the log level that a command has set for all processes, while it is in force. */
    logLevel: `${base}:log-level`,
    /** Hash: by each API key's name, the sequence number of the last command that has set the key's rate, and that rate. */
    enqueueRates: `${base}:enqueue-rates`,
    /** Channel: announces a worker or queue that a command or setting concerns. */
    notifications: `${base}:notifications`,
    /** Channel: announces the id of a command to which a worker has responded. */
    responses: `${base}:responses`,
  }
}

export type FleetKeys = ReturnType<typeof fleetKeys>

/** Returns the keys that only Bullpen 0.1.0 wrote. Any one of them proves that a namespace has schema 1. */
export function legacyKeys(namespace: string, queue: string) {
  const base = `${prefixOf(namespace, queue)}:${queue}`
  return { fleet: `{${namespace}}:fleet:beats`, queue: [`${base}:switches`, `${base}:cancel-feeds`] as const }
}

const { base: BASE, ...KEYS } = queueKeys('n', 'q')
/**
 * A key with a parameter begins with its name and a colon, unless it belongs to a job. BullMQ's keys of the job `lane` begin
 * with `lane:`, too.
 */
const NAMES = Object.values(KEYS).flatMap((key) => {
  if (typeof key === 'string') return [key.slice(BASE.length)]
  const [, name] = /^([a-z-]+):$/.exec((key as (parameter: string) => string)('').slice(BASE.length)) ?? []
  return name === undefined ? [] : [name]
})

/**
 * The names of a queue's own keys, with a space before and after each. A job whose id is one of these names would share its key
 * with the queue's own data: BullMQ would either mistake that data for an existing job and not add the new one, or overwrite the
 * data with the job's fields.
 */
export const RESERVED_IDS = ` ${NAMES.join(' ')} `
