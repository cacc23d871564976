// Finds the queues of plain BullMQ on a server, by the keys in which they keep their settings: PREFIX:NAME:meta.
import { ReplyError } from 'ioredis'
import type { Server } from '../redis/server/server-description.ts'

export interface SearchOptions {
  /** Examines only queues with this prefix. */
  readonly prefix?: string | undefined
  /** Examines only queues with this name. */
  readonly queue?: string | undefined
  /** When the search stops, on the monotonic clock. */
  readonly until: number
}

export interface FoundQueue {
  readonly prefix: string
  readonly name: string
}

export interface Search {
  readonly queues: readonly FoundQueue[]
  /** False if the search has stopped before it had seen every key, or because it had found {@link MAX_QUEUES} queues. */
  readonly isComplete: boolean
}

/** How many keys the server looks at in one step, which takes it less than a millisecond. */
const KEYS_PER_STEP = 1_000
/** How many queues are examined at most. */
const MAX_QUEUES = 500
const SUFFIX = ':meta'
/** A Bullpen queue has its namespace and its own name in a hash tag as its prefix, and its sets hold further statuses. */
const BULLPEN_PREFIX = /^\{[^{}]+\.([^{}]+)\}$/
/** Redis computes the slot of a key from the text between its first brace and the next closing one, unless the text is empty. */
const HASH_TAG = /^[^{]*\{[^}]+\}/

/** Takes a round trip for every thousand keys, or a single one if the prefix and the name of the queue are given. */
export async function findQueues(server: Server, { prefix, queue, until }: SearchOptions): Promise<Search> {
  if (prefix !== undefined && queue !== undefined) {
    const exists = await server.exists(`${prefix}:${queue}${SUFFIX}`).catch(onAnotherNode)
    return { queues: exists === 1 ? [{ prefix, name: queue }] : [], isComplete: true }
  }
  const pattern = `${escaped(prefix)}:${escaped(queue)}${SUFFIX}`
  const found = new Map<string, FoundQueue>()
  let cursor = '0'
  do {
    const [next, keys] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_PER_STEP, 'TYPE', 'hash')
    cursor = next
    for (const key of keys) {
      const each = queueOf(key)
      if (each !== undefined && (queue === undefined || each.name === queue)) found.set(key, each)
    }
  } while (cursor !== '0' && found.size < MAX_QUEUES && performance.now() < until)
  const queues = [...found.values()].sort((one, other) =>
    compare(`${one.prefix}:${one.name}`, `${other.prefix}:${other.name}`),
  )
  return { queues, isComplete: cursor === '0' }
}

/** Returns undefined for a key that is not one of BullMQ's, and for a queue of Bullpen. */
function queueOf(key: string): FoundQueue | undefined {
  // The name of a queue contains no colon, but its prefix may.
  const [, prefix = '', name = ''] = /^(.+):([^:]+):meta$/s.exec(key) ?? []
  return name === '' || BULLPEN_PREFIX.exec(prefix)?.[1] === name ? undefined : { prefix, name }
}

/** Returns whether all keys of the queue are in one slot of a Redis Cluster. */
export function isInOneSlot({ prefix, name }: FoundQueue): boolean {
  return HASH_TAG.test(`${prefix}:${name}:`)
}

/** A node of a cluster rejects a key that belongs to another node. */
function onAnotherNode(error: unknown): 0 {
  if (error instanceof ReplyError && String(error).includes('MOVED ')) return 0
  throw error
}

/** Escapes the characters that have a meaning in a pattern. */
function escaped(text: string | undefined): string {
  return text === undefined ? '*' : text.replace(/[\\*?[\]^-]/g, String.raw`\$&`)
}

function compare(one: string, other: string): number {
  return one < other ? -1 : 1
}
