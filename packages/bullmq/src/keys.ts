// Names Bullpen's keys and channels in Redis, alongside BullMQ's keys. The table of keys (orphans/key-table.ts) says of each key what type
// it has, what it holds and what ends it. A comment here adds what its fields, members and scores are, if the table does not say so.
import { bullmqKeys } from './internals/bullmq-keys.ts'

/** Stored in every namespace. Raise this number when stored data changes in a way that an older or newer Bullpen would misread. */
export const SCHEMA_VERSION = 3

/** Returns the key of the schema version that a namespace was written with. */
export function schemaKey(namespace: string): string {
  return `{${namespace}}:schema`
}

/** Returns the keys of a namespace's leader. They share a hash tag with the schema version, so that one script can read all of them. */
export function leaderKeys(namespace: string) {
  const base = `{${namespace}}:leader`
  return {
    schema: schemaKey(namespace),
    lease: `${base}:lease`,
    fencing: `${base}:fencing`,
    registry: `${base}:registry`,
    /** Channel: announces a queue that has work for the leader, '' when the leader has resigned, or '.' when it renews its lease. */
    channel: `${base}:channel`,
  }
}

export type LeaderKeys = ReturnType<typeof leaderKeys>

/** Returns the key of the producers, by the time at which each last read the memory. In a cluster, each queue has its own set. */
export function producersKey(namespace: string): string {
  return `{${namespace}}:producers`
}

/** Returns the key of an API key's bucket of tokens (store/lua/includes/add/token-bucket.lua). */
export function enqueueRateKey(namespace: string, apiKeyName: string): string {
  return `{${namespace}}:enqueue-rate:${apiKeyName}`
}

/** Returns the key of the groups that have not ended, or whose outboxes are not empty, by when the leader looks at each of them. */
export function groupsKey(namespace: string): string {
  return `{${namespace}}:groups`
}

/** Returns the key of what schedules/declare-schedules.lua stores. */
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
    meta: `${base}meta`,
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
    meta: `${base}meta`,
    definition: `${base}definition`,
    /** Set: the tasks that have not ended, each as the number of its stage and its position. */
    tasks: `${base}tasks`,
    /** Hash: by task, the inputs of these tasks that are too large to be passed on. */
    inputs: `${base}inputs`,
    /** List: the items that wait for a stage, or for a batch of results, each as its position and its value. */
    waiting: (stage: string) => `${base}waiting:${stage}`,
    /** Hash: what has arrived at the end of a section before an earlier item, by the section's number and the position. */
    early: `${base}early`,
    results: `${base}results`,
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

    scheduled: `${base}:scheduled`,
    retrying: `${base}:retrying`,
    postponed: `${base}:postponed`,
    dead: `${base}:dead`,
    cancelled: `${base}:cancelled`,
    expired: `${base}:expired`,
    /** By fingerprint (store/lua/includes/end/fingerprints.lua). */
    fingerprints: `${base}:fingerprints`,
    fingerprint: (fingerprint: string) => `${base}:fingerprint:${fingerprint}`,
    deadRequests: `${base}:dead-requests`,
    deadProgress: (id: string) => `${base}:dead-progress:${id}`,
    deadRequestIds: `${base}:dead-request-ids`,
    /** See store/lua/includes/lanes/lanes.lua. */
    lane: (name: string) => `${base}:lane:${name}`,
    lanePriorities: (name: string) => `${base}:lane-priorities:${name}`,
    lanes: `${base}:lanes`,
    /** The lanes by their pass. The lane with the smallest pass starts the next task (store/lua/includes/lanes/turns.lua). */
    turns: `${base}:turns`,
    /**
     * Hash: how many tasks wait in lanes (`waiting`), a counter (`order`), the pass of the tasks without a lane (`pass`), and that of the
     * last turn after which a lane was blocked (`time`).
     */
    turnState: `${base}:turn-state`,
    /** The limits of all concurrency keys (`concurrency`) and of single ones (store/lua/includes/limits/key-limits.lua). */
    keyLimits: `${base}:key-limits`,
    capacities: `${base}:capacities`,
    inUse: `${base}:in-use`,
    /** Sorted set: the blocked lanes that wait with this need, by the pass of the turn in which they met the limit. */
    needWaiters: (need: string) => `${base}:need-waiters:${need}`,
    /** Sorted set: the needs for which lanes wait, all with the score 0. */
    waitedNeeds: `${base}:waited-needs`,
    /** Sorted set: the concurrency keys that have several lanes, by the pass that the last start of the key has reached. */
    keyPasses: `${base}:key-passes`,
    activeByKey: `${base}:active-by-key`,
    /** Sorted set: the lanes whose limits allow no start, by the pass with which they take turns again. */
    blockedLanes: `${base}:blocked-lanes`,
    /** See store/lua/includes/lanes/blocked-lanes.lua and, of the services, store/lua/includes/limits/gates.lua. */
    laneTimes: `${base}:lane-times`,
    keyThrottles: `${base}:key-throttles`,
    keyRate: (key: string) => `${base}:key-rate:${key}`,
    /** By the name of their service (breakers/stored-breaker.ts). */
    breakers: `${base}:breakers`,
    newFingerprints: `${base}:new-fingerprints`,
    /**
     * Hash: how many tasks were ever added (`accepted`) and deleted (`removed`), how often one was recovered from a lost worker
     * (`recovered`), how many bytes the unfinished tasks take (`bytes`), how many repairs the index and the bytes have needed
     * (`drift`), and when both were last compared with the tasks (`comparedAt`, in ms since 1970), when the active tasks of
     * concurrency keys were last counted (`countedAt`), the size of the entries in the outbox (`outboxBytes`), and how the
     * records of forwarded follow-ups are divided (`forwardedDigits`: store/lua/includes/add/forwarded.lua).
     */
    totals: `${base}:totals`,
    /** For each setting, also the sequence number of the last command that changed it. */
    settings: `${base}:settings`,
    leader: `${base}:leader`,
    expiries: `${base}:expiries`,
    /** Hash: the last task that received each unique key, and until when the task has the key (store/lua/includes/add/key-owner.lua). */
    uniqueKeys: `${base}:unique-keys`,
    /** By the time of the enqueue (store/lua/includes/task/removed-tasks.lua). */
    recentlyRemoved: `${base}:recently-removed`,
    replicated: `${base}:replicated`,
    unrenewed: `${base}:unrenewed`,
    attachedCheck: `${base}:attached-check`,
    /** JSON (leader/unattached-workers.ts). */
    unattached: `${base}:unattached`,
    lostTasks: `${base}:lost-tasks`,
    /**
     * Hash: records of idempotency keys that have the same lifetime (in s) and were stored in the same period. `bucket` is the beginning
     * of their keys, and `period` the number of the period (store/lua/includes/add/idempotency.lua).
     */
    idempotency: (life: string, bucket: string, period: string) => `${base}:idempotency:${life}:${bucket}:${period}`,
    /** By the time in s since 1970 by which all of the records have expired (store/lua/includes/add/idempotency.lua). */
    idempotencyCounts: `${base}:idempotency-counts`,
    /** An entry is in a field `e` (outbox/outbox-entry.ts). The consumer group `forwarders` knows which entries a process has claimed. */
    outbox: `${base}:outbox`,
    /** `digest` is a part of the follow-ups' digests (store/lua/includes/add/forwarded.lua). */
    forwarded: (quarterDay: string, digest: string) => `${base}:forwarded:${quarterDay}:${digest}`,
    apiKeyTasks: `${base}:api-key-tasks`,
    /** If the API key has a rate in this queue (store/lua/includes/add/token-bucket.lua). */
    apiKeyRates: `${base}:api-key-rates`,
    /** See store/lua/includes/end/retry-budget.lua. */
    retryBudget: (task: string) => `${base}:retry-budget:${task}`,
    /** By the beginning of each retry's slot. */
    heldRetries: (task: string) => `${base}:held-retries:${task}`,
    /** Each is a token and its record as JSON (store/lua/includes/schedule-write.lua). */
    schedules: `${base}:schedules`,
    scheduleTimes: `${base}:schedule-times`,
    /** See schedules/trouble-watch.ts. */
    scheduleTroubles: `${base}:schedule-troubles`,
    /** See store/lua/includes/task/task-events.lua. */
    taskEvents: `${base}:task-events`,
    eventBatch: (process: string) => `${base}:event-batch:${process}`,
    /** Hash: who requested the cancellation, for each running task with a pending cancellation. */
    cancelling: `${base}:cancelling`,
    cancelRules: `${base}:cancel-rules`,
    cancelConsumers: `${base}:cancel-consumers`,
    cancelKnown: (id: string) => `${base}:cancel-known:${id}`,
    cancelProgress: (id: string) => `${base}:cancel-progress:${id}`,
    cancelReturned: `${base}:cancel-returned`,
    /** The `id` of the pass, and the rules that match a task in `cancelReturned`, by id. */
    cancelPass: `${base}:cancel-pass`,
    endReply: (caller: string) => `${base}:end-reply:${caller}`,
    cancelReply: (request: string) => `${base}:cancel-reply:${request}`,
    cancelledGroup: (group: string) => `${base}:cancelled-group:${group}`,
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
    heartbeats: `${base}:heartbeats`,
    served: `${base}:served`,
    worker: (id: string) => `${base}:worker:${id}`,
    inbox: (id: string) => `${base}:inbox:${id}`,
    command: (id: string) => `${base}:command:${id}`,
    commands: `${base}:commands`,
    unapplied: `${base}:unapplied`,
    settingsRevision: `${base}:settings-revision`,
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
