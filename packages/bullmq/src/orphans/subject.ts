// Keys and entries of keys that may have no owner, as the scripts get them that check so (store/lua/includes/subject-state.lua).
import type { Condition, KeyType } from './rows/key-row.ts'

/** A key, or an entry of a key, that may be an orphan. All keys of one call share a hash slot. */
export interface Subject {
  readonly key: string
  /** Undefined if no type is expected, because the table of keys does not contain the key. */
  readonly type: KeyType | undefined
  /** Whether the key must have a time to live. */
  readonly expires: boolean
  /** The entry, and its value when it was read, if the subject is an entry. An entry that has changed since has an owner. */
  readonly entry: { readonly name: string; readonly value: string } | undefined
  /** The conditions of which one must hold. If there are none, the subject has an owner as long as it exists. */
  readonly owned: readonly Condition[]
  /** The keys that are deleted with the key. */
  readonly deletedWith: readonly string[]
}

/**
 * - `owned`: the subject has an owner, or does not exist any more.
 * - `unknown`: the key exists, but the table of keys does not contain it.
 * - `wrong_type`: the key does not have the type that the table names.
 * - `no_owner`: none of the conditions holds.
 * - `no_expiry`: the key has an owner, but no time to live, although every key of its kind should have one.
 */
export const SUBJECT_STATES = ['owned', 'unknown', 'wrong_type', 'no_owner', 'no_expiry'] as const

export type SubjectState = (typeof SUBJECT_STATES)[number]

/** How Redis names the types. */
const REDIS_TYPES: Readonly<Record<KeyType, string>> = {
  string: 'string',
  list: 'list',
  set: 'set',
  'sorted set': 'zset',
  hash: 'hash',
  stream: 'stream',
}

/** Encodes a subject for the scripts that examine it. */
export function encodeSubject({ key, type, expires, entry, owned, deletedWith }: Subject): string[] {
  return [
    key,
    type === undefined ? '' : REDIS_TYPES[type],
    expires ? '1' : '',
    entry === undefined ? '' : '1',
    entry?.name ?? '',
    entry?.value ?? '',
    String(owned.length),
    ...owned.flatMap((condition) => [condition.kind, condition.key, condition.argument]),
    String(deletedWith.length),
    ...deletedWith,
  ]
}
