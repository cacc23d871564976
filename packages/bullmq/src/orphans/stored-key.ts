// Tells what a key of a namespace is: which row of the table describes the key, and to which queue or group it belongs.
import type { Orphan } from '@bullpen/contract'
import { groupKeys, queueKeys, runKeys } from '../keys.ts'
import { type DescribedKey, GROUP_KEYS, NAMESPACE_KEYS, QUEUE_KEYS, RUN_KEYS } from './key-table.ts'
import type { Entry } from './rows/key-row.ts'
import { namespaceKeys } from './rows/namespace-rows.ts'
import type { Subject } from './subject.ts'

/** A key or an entry that may be an orphan, and what is reported about it. */
export interface Suspect {
  readonly subject: Subject
  readonly about: Pick<Orphan, 'queue' | 'kind' | 'owner'>
}

/** Returns the pattern for SCAN that matches all keys of a namespace, and no key of another one. */
export const patternOf = (namespace: string): string => `{${namespace}[.:}]*`

/**
 * Returns what is known of a key before anything else is read. Returns undefined if the key does not belong to the namespace. If
 * the table does not contain the key, the subject has no type.
 */
export function suspectOf(namespace: string, key: string): Suspect | undefined {
  const place = placeOf(namespace, key)
  if (place === undefined) return undefined
  const { queue } = place
  const found = describeIn(namespace, place)
  const about = { ...(queue !== undefined && { queue }), ...found?.about }
  const unknown = { type: undefined, expires: false, owned: [], deletedWith: [] }
  return { subject: { key, entry: undefined, ...(found?.subject ?? unknown) }, about }
}

interface Place {
  /** Undefined if the key belongs to a group or a run, or to the namespace itself. */
  readonly queue: string | undefined
  /** The id of a group or of a run. */
  readonly group: string | undefined
  /** The key without the prefix of its queue, group, run or namespace. '' if the key has the queue's hash tag, but not its prefix. */
  readonly below: string
}

function placeOf(namespace: string, key: string): Place | undefined {
  const [, tag = '', below = ''] = /^\{([^}]*)\}:(.*)$/s.exec(key) ?? []
  if (tag === namespace) return { queue: undefined, group: undefined, below }
  // Neither a namespace nor a queue has a colon in its name.
  if (tag.startsWith(`${namespace}:`)) return { queue: undefined, group: tag.slice(namespace.length + 1), below }
  // A namespace has no dot in its name, but a queue may.
  if (!tag.startsWith(`${namespace}.`)) return undefined
  const queue = tag.slice(namespace.length + 1)
  return { queue, group: undefined, below: below.startsWith(`${queue}:`) ? below.slice(queue.length + 1) : '' }
}

function describeIn(namespace: string, { queue, group, below }: Place): Described | undefined {
  if (queue !== undefined) return describe(QUEUE_KEYS, queueKeys(namespace, queue), below)
  if (group?.startsWith('run-')) return describe(RUN_KEYS, runKeys(namespace, group), below)
  if (group !== undefined) return describe(GROUP_KEYS, groupKeys(namespace, group), below)
  return describe(NAMESPACE_KEYS, namespaceKeys(namespace), below)
}

interface Described {
  readonly subject: Omit<Subject, 'key' | 'entry'>
  readonly about: Pick<Orphan, 'kind' | 'owner'>
}

function describe<Keys>(rows: readonly DescribedKey<Keys>[], keys: Keys, below: string): Described | undefined {
  for (const row of rows) {
    const part = row.match(below)
    if (part === undefined) continue
    const { type, expires = false, owned, deletedWith, pattern: kind, owner } = row
    const subject = { type, expires, owned: owned?.(keys, part) ?? [], deletedWith: deletedWith?.(keys, part) ?? [] }
    return { subject, about: { kind, owner } }
  }
  return undefined
}

/** The structures of a queue whose entries belong to something, in the order of a search. */
export const STRUCTURES = QUEUE_KEYS.filter(({ entryOwned }) => entryOwned !== undefined)

export type Structure = (typeof STRUCTURES)[number]

/** Returns an entry of one of a queue's structures. */
export function entrySuspect(namespace: string, queue: string, structure: Structure, entry: Entry): Suspect {
  const keys = queueKeys(namespace, queue)
  const { type, pattern: kind, owner, entryOwned } = structure
  const owned = entryOwned?.(keys, entry) ?? []
  const subject = { key: structure.keyOf(keys), type, expires: false, entry, owned, deletedWith: [] }
  return { subject, about: { queue, kind, owner } }
}
