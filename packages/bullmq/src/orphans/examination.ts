// Examines one page of a namespace's keys, or of the entries of a queue's structures, and collects what may be an orphan.
//
// For most tasks, a sorted set says in O(1) that they belong to their queue. A waiting or active task is in a list, in which Redis
// would have to search for it. Such tasks are collected as well, and the caller looks for all of them at once (./list-walk.ts).
import type { Redis } from 'ioredis'
import { queueKeys } from '../keys.ts'
import { isCluster, keyOfNode } from '../redis/redis-client.ts'
import type { RedisAccess } from '../schema.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { readEntries } from './entry-page.ts'
import { type OwnershipOptions, statesOf } from './ownership.ts'
import { nodeReplaced, type SearchPosition } from './search-position.ts'
import { entrySuspect, patternOf, STRUCTURES, type Suspect, suspectOf } from './stored-key.ts'
import type { Subject } from './subject.ts'

/** What applies to the whole namespace during a part of a search. */
export interface Circumstances {
  /** The registered queues, sorted. */
  readonly queues: readonly string[]
  readonly hasLeader: boolean
}

/** What a part of a search has found so far. */
export interface Findings {
  readonly suspects: Suspect[]
  /** By queue that is not registered: one of its keys, and how many there are. */
  readonly unknownQueues: Map<string, { readonly key: string; keys: number }>
  examined: number
}

/** The approximate number of keys that one SCAN visits, which takes Redis about 0.2 ms. */
const SCANNED_AT_ONCE = 500

/** Returns the position at which a search begins. */
export function firstPosition(redis: OwnershipOptions['redis']): SearchPosition {
  return { node: serversOf(redis)[0]?.name ?? '', scan: '0' }
}

/**
 * Examines one page, adds what it finds to `found`, and returns the position of the next page, or undefined at the end. Takes one
 * round trip to read the page, and one for each hundred keys or 300 entries.
 *
 * @throws BullpenError `invalid_cursor` if the position is on a node that is no longer a master of the cluster.
 */
export function examinePage(
  options: RedisAccess,
  position: SearchPosition,
  around: Circumstances,
  found: Findings,
): Promise<SearchPosition | undefined> {
  if ('scan' in position) return examineKeys(options, position, around, found)
  return examineEntries(options, position, around, found)
}

async function examineKeys(
  options: RedisAccess,
  { node: name, scan }: Extract<SearchPosition, { scan: unknown }>,
  { queues }: Circumstances,
  found: Findings,
): Promise<SearchPosition> {
  const { redis, call, namespace } = options
  const servers = serversOf(redis)
  const at = servers.findIndex((each) => each.name === name)
  const server = servers[at]?.server
  if (server === undefined) throw nodeReplaced(name)
  const sentAt = performance.now()
  const read = () => server.scan(scan, 'MATCH', patternOf(namespace), 'COUNT', SCANNED_AT_ONCE)
  const [next, keys] = await call(read)
  await pauseAfterPage(sentAt)
  const suspects: Suspect[] = []
  for (const key of keys) {
    const suspect = suspectOf(namespace, key)
    if (suspect === undefined) continue
    const { queue } = suspect.about
    if (queue === undefined || queues.includes(queue)) {
      suspects.push(suspect)
      continue
    }
    const unknown = found.unknownQueues.get(queue) ?? { key, keys: 0 }
    unknown.keys++
    found.unknownQueues.set(queue, unknown)
    found.examined++
  }
  await examine(options, suspects, found)
  if (next !== '0') return { node: name, scan: next }
  const following = servers[at + 1]
  return following === undefined ? { queue: '', structure: 0, at: '0' } : { node: following.name, scan: '0' }
}

async function examineEntries(
  options: RedisAccess,
  position: Extract<SearchPosition, { structure: unknown }>,
  { queues, hasLeader }: Circumstances,
  found: Findings,
): Promise<SearchPosition | undefined> {
  const { redis, call, namespace } = options
  const queue = queues.find((name) => name >= position.queue)
  if (queue === undefined) return undefined
  const { structure: index, at } = queue === position.queue ? position : { structure: 0, at: '0' }
  const structure = STRUCTURES[index]
  // A name follows directly on another one if it has one more character, the smallest of all.
  if (structure === undefined) return { queue: `${queue}\0`, structure: 0, at: '0' }
  const following = { queue, structure: index + 1, at: '0' }
  if (structure.entriesLeftToLeader && hasLeader) return following
  const sentAt = performance.now()
  const key = structure.keyOf(queueKeys(namespace, queue))
  const { entries, next } = await call(() => readEntries(redis, key, structure.type, at))
  if (entries.length > 0) {
    await pauseAfterPage(sentAt)
    const suspects = entries.map((entry) => entrySuspect(namespace, queue, structure, entry))
    await examine(options, suspects, found)
  }
  return next === '0' ? following : { queue, structure: index, at: next }
}

/** Examines subjects as far as that is possible without searching lists. */
async function examine(options: RedisAccess, suspects: readonly Suspect[], found: Findings): Promise<void> {
  found.examined += suspects.length
  const quick = new Map(suspects.map((suspect) => [withoutLists(suspect.subject), suspect]))
  // Without a condition that is checked quickly, only the lists can tell.
  const checked = [...quick].flatMap(([each, { subject }]) =>
    each.owned.length > 0 || subject.owned.length === 0 ? [each] : [],
  )
  const states = await statesOf(options, checked)
  for (const [each, suspect] of quick) if (states.get(each) !== 'owned') found.suspects.push(suspect)
}

function withoutLists(subject: Subject): Subject {
  return { ...subject, owned: subject.owned.filter(({ kind }) => kind !== 'listed' && kind !== 'laned') }
}

interface Server {
  readonly name: string
  readonly server: Pick<Redis, 'scan'>
}

/** Returns the servers that hold keys, in an order that stays the same as long as none is replaced. */
function serversOf(redis: OwnershipOptions['redis']): readonly Server[] {
  if (!isCluster(redis)) return [{ name: '', server: redis }]
  const nodes = redis.nodes('master').map((server) => ({ name: keyOfNode(server.options), server }))
  return nodes.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}
