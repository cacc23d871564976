// The table of all keys that Bullpen and its pinned version of BullMQ write in Redis: what each key holds, who owns it, and what
// ends it.
//
// The patterns are made from the functions that name the keys (../keys.ts), and every key of these functions must have a row, or
// the code does not compile. No key matches two rows (key-table.test.ts). A test does every kind of work on Redis, and finds that
// each key has a row, and that each row is used (stored-keys.test.ts). The search for orphans (orphan-search.ts) finds the keys
// that match no row or have no owner.
//
// To add a kind of key:
//
// 1. Name it in ../keys.ts. All keys that one script uses share a hash tag.
// 2. Add a row to rows/queue-rows.ts or rows/namespace-rows.ts. If the key must not outlive something else, `owned` says what;
//    if its entries must not, `entryOwned` does. If every such key expires, set `expires`. If neither applies, `ends` says why
//    the key stays small.
// 3. Do the work that writes the key in stored-keys.test.ts, and plant an orphan of this kind in orphan-search.test.ts. Run `npm run docs`,
//    because docs/reference/redis-keys.md is generated from the table.
import { type GroupKeys, groupKeys, type QueueKeys, queueKeys, type RunKeys, runKeys } from '../keys.ts'
import { BULLMQ_ROWS } from './rows/bullmq-rows.ts'
import { GROUP_ROWS } from './rows/group-rows.ts'
import { type KeyOwner, type KeyRow, PARTS, type PartName } from './rows/key-row.ts'
import { NAMESPACE_ROWS, type NamespaceKeys, namespaceKeys } from './rows/namespace-rows.ts'
import { BULLPEN_ROWS } from './rows/queue-rows.ts'
import { RUN_ROWS } from './rows/run-rows.ts'

const QUEUE_ROWS = { ...BULLMQ_ROWS, ...BULLPEN_ROWS } satisfies Record<
  Exclude<keyof QueueKeys, 'base' | 'cancelRulesChannel' | 'cancelChannel'>,
  KeyRow<QueueKeys>
>

/** A row together with the keys that it describes. */
export interface DescribedKey<Keys> extends KeyRow<Keys> {
  readonly owner: KeyOwner
  /** The key below the prefix of the queue or the namespace, such as `idempotency:<life>:<bucket>:<period>`. */
  readonly pattern: string
  /** Whether BullMQ or Bullpen defines the key. */
  readonly definedBy: 'BullMQ' | 'Bullpen'
  /**
   * Returns the first variable part of a key below the prefix, '' if the key has none, or undefined if the row does not describe
   * the key.
   */
  readonly match: (below: string) => string | undefined
  /** Returns the name of the key without variable parts. */
  readonly keyOf: (keys: Keys) => string
}

type NamedKeys = Readonly<Record<string, string | ((...parts: string[]) => string)>>

/** Returns the keys by name. A row has the name of its key, but the type of `keys` does not say that all of its values are keys. */
const named = (keys: object): NamedKeys => keys as NamedKeys

function described<Keys extends { readonly base: string }>(
  rows: Readonly<Record<string, KeyRow<Keys>>>,
  keys: Keys,
  owner: KeyOwner,
): readonly DescribedKey<Keys>[] {
  const below = (name: string, { parts = [] }: KeyRow<Keys>): string => {
    const key = named(keys)[name]
    const text = typeof key === 'function' ? key(...parts.map((part) => `<${part}>`)) : (key ?? '')
    return text.slice(keys.base.length)
  }
  const patterns = Object.entries(rows).map(([name, row]) => [name, row, below(name, row)] as const)
  const regexOf = regexesOf(patterns.map(([, , pattern]) => pattern))
  return patterns.map(([name, row, pattern]) => {
    const regex = regexOf(pattern)
    return {
      ...{ owner, ...row },
      pattern,
      definedBy: name in BULLMQ_ROWS ? 'BullMQ' : 'Bullpen',
      match: (text) => {
        const found = regex.exec(text)
        return found === null ? undefined : (found[1] ?? '')
      },
      keyOf: (own) => String(named(own)[name]),
    }
  })
}

/**
 * Returns a function that returns the regular expression for one of these patterns. No task has the name of another key as its id,
 * because the scripts that add tasks refuse such an id. A task may have an id such as `de`, with which other keys begin. In that
 * case, its own key is recognised, but a key that belongs to it, such as its lock, is taken for the other kind of key.
 */
function regexesOf(patterns: readonly string[]): (pattern: string) => RegExp {
  const names = patterns.filter((pattern) => !pattern.includes('<')).map(escaped)
  const words = patterns.filter((pattern) => /^[^<]+:/.test(pattern)).map((pattern) => pattern.replace(/:.*/s, ''))
  const notTask = (pattern: string): string =>
    pattern === '<task>'
      ? `(?!(?:${names.join('|')})$)`
      : `(?!(?:${words.filter((word) => word !== 'repeat').join('|')}):)`
  return (pattern) => {
    const parts = pattern.split(/<([^>]+)>/)
    const text = parts.map((each, i) => {
      if (i % 2 === 0) return escaped(each)
      return `${each === 'task' ? notTask(pattern) : ''}(${PARTS[each as PartName]})`
    })
    return new RegExp(`^${text.join('')}$`, 's')
  }
}

const escaped = (text: string): string => text.replaceAll(/\W/g, '\\$&')

/** The keys of a queue, below `{namespace.queue}:queue:`. */
export const QUEUE_KEYS: readonly DescribedKey<QueueKeys>[] = described(QUEUE_ROWS, queueKeys('n', 'q'), 'queue')

/** The keys of a group, below `{namespace:group}:`. */
export const GROUP_KEYS: readonly DescribedKey<GroupKeys>[] = described(GROUP_ROWS, groupKeys('n', 'g'), 'group')

/** The keys of a pipeline's run, below `{namespace:run}:`. */
export const RUN_KEYS: readonly DescribedKey<RunKeys>[] = described(RUN_ROWS, runKeys('n', 'r'), 'run')

/** The keys of a namespace, below `{namespace}:`. */
export const NAMESPACE_KEYS: readonly DescribedKey<NamespaceKeys>[] = described(
  NAMESPACE_ROWS,
  namespaceKeys('n'),
  'namespace',
)
