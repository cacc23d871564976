// Defines a row of the table of keys: what a key holds, who owns it, and what ends it.

export type KeyType = 'string' | 'list' | 'set' | 'sorted set' | 'hash' | 'stream'

/**
 * What has to exist for a key, or for an entry of a key, to belong to something. If several conditions are given, one is enough.
 * All keys of a condition share the hash slot of the key that it is about.
 *
 * - `exists`: the key exists.
 * - `scored`, `field`: the sorted set or the hash contains the member.
 * - `listed`: the list contains the element. The check takes Redis up to 3 ms for a list of 200,000 elements.
 * - `laned`: the task `argument` is in its lane (store/lua/includes/lanes/lanes.lua). `key` is the prefix of the queue's keys. The check
 *   takes as long as that of a list.
 * - `expires`: the key has a time to live.
 * - `points`: the string contains the rest of an existing key, after the prefix `argument`.
 * - `later`: Redis's time is before `argument`, in ms since 1970.
 */
export type ConditionKind = 'exists' | 'scored' | 'field' | 'listed' | 'laned' | 'expires' | 'points' | 'later'

export interface Condition {
  readonly kind: ConditionKind
  readonly key: string
  /** The member, field, element, prefix or time. '' if the kind has none. */
  readonly argument: string
}

export const exists = (key: string): Condition => ({ kind: 'exists', key, argument: '' })
export const scored = (key: string, member: string): Condition => ({ kind: 'scored', key, argument: member })
export const field = (key: string, name: string): Condition => ({ kind: 'field', key, argument: name })
export const listed = (key: string, element: string): Condition => ({ kind: 'listed', key, argument: element })
export const laned = (base: string, id: string): Condition => ({ kind: 'laned', key: base, argument: id })
export const expires = (key: string): Condition => ({ kind: 'expires', key, argument: '' })
export const points = (key: string, prefix: string): Condition => ({ kind: 'points', key, argument: prefix })
/** `key` is any key of the same hash slot. */
export const later = (key: string, time: number): Condition => ({ kind: 'later', key, argument: String(time) })

/** What a key belongs to. When the owner is gone, so is the key, unless the row says how much longer it is kept. */
export type KeyOwner =
  | 'task'
  | 'queue'
  | 'namespace'
  | 'worker'
  | 'leader'
  | 'producer'
  | 'definition'
  | 'kind of error'
  | 'schedule'
  | 'unique key'
  | 'concurrency key'
  | 'idempotency key'
  | 'API key'
  | 'cancel rule'
  | 'cancel request'
  | 'dead-task request'
  | 'command'
  | 'deduplication id'
  | 'job scheduler'
  | 'group'
  | 'run'

/** The variable parts of keys, as regular expressions. Parts that only Bullpen generates are matched strictly. */
export const PARTS = {
  /** The jobs of job schedulers have ids with colons. */
  'concurrency key': '[\\s\\S]+',
  lane: '[\\s\\S]+',
  need: '[\\s\\S]+',
  task: '(?!repeat:)[^:]+|repeat:[^:]+:\\d+',
  fingerprint: 'other|[0-9a-f]{16}',
  definition: '.+',
  request: '.+',
  rule: '.+',
  process: '.+',
  worker: '.+',
  command: '.+',
  'api key': '.+',
  'deduplication id': '.+',
  scheduler: '[^:]+',
  life: '\\d+',
  bucket: '[\\w-]{2}',
  period: '\\d',
  'quarter day': '\\d+',
  digest: '[0-9a-f]{3}',
  group: 'group-[0-9a-z]{26}|(?:run|reduce)-[0-9a-z]{26}\\.[0-9a-z]{8}',
  stage: '\\d+',
} as const

export type PartName = keyof typeof PARTS

/**
 * An entry of a structure: an element or a member, and the value of a hash's field or the score of a sorted set's member (''
 * otherwise).
 */
export interface Entry {
  readonly name: string
  readonly value: string
}

export interface KeyRow<Keys> {
  readonly type: KeyType
  /** The variable parts of the key, in order. Defaults to none. */
  readonly parts?: readonly PartName[]
  /** Completes the sentence "The key holds …". */
  readonly holds: string
  /** Defaults to the queue, the namespace, the group or the run. */
  readonly owner?: KeyOwner
  /** What deletes the key, or keeps it small. */
  readonly ends: string
  /** Whether every such key has a time to live. A key that does not always have one may still expire. */
  readonly expires?: true
  /**
   * The conditions of which one must hold for the key to have an owner. `part` is the first variable part. By default, the key
   * belongs to its queue or namespace, and always has an owner.
   */
  readonly owned?: (keys: Keys, part: string) => readonly Condition[]
  /** The keys that are deleted together with an orphaned key. */
  readonly deletedWith?: (keys: Keys, part: string) => readonly string[]
  /**
   * The conditions of which one must hold for an entry of the key to have an owner. By default, entries are not checked. Only for
   * keys without variable parts, which the search can name without reading anything.
   */
  readonly entryOwned?: (keys: Keys, entry: Entry) => readonly Condition[]
  /** Whether the leader deletes entries without an owner, so that they are orphans only if the namespace has no leader. */
  readonly entriesLeftToLeader?: true
}
