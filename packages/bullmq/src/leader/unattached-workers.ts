// Reports unattached Workers: BullMQ Workers that use a queue without Bullpen's backend, so that they run BullMQ's own scripts.
//
// Two traces show such a Worker. Its check for lost jobs, which BullMQ makes when a Worker starts and then every 30 s by default, sets a
// key that no script of Bullpen sets. And its locks are keys, as in BullMQ, which the leader's own check for lost tasks sees
// (../store/lua/recover.lua). A Worker that makes no such check, and whose tasks take less than two rounds, leaves neither.
//
// Neither trace costs an idle queue a command. CLIENT LIST, whose reply has every client of the server, is only sent to find out where such
// a Worker runs. What is known is stored, so that the next leader does not repeat a report.
import type { UnattachedWorkers } from '@bullpen/engine/internal'
import { fleetKeys, prefixOf, queueKeys } from '../keys.ts'
import { serversOf, unlessRefused } from '../redis/server/server-description.ts'
import { workerConnections } from '../redis/server/worker-connections.ts'
import type { Commander } from '../scripts/script.ts'
import type { Checked } from '../store/recover.ts'

/** How long there must be no trace until a Worker counts as gone, in ms. A Worker's next check sets the key again when it expires. */
const GONE_AFTER_MS = 10_000
/** How long the locks that a check has found count, in ms: more than two of the leader's rounds. */
const HELD_MS = 4_000
const LIST_EVERY_MS = 4_000
/** How often the queue is compared meanwhile, in ms, because such a Worker refunds no charges. */
const COMPARE_EVERY_MS = 60_000
const KEPT_MS = 600_000
/** The maximum number of tasks that a report names. */
const MAX_IDS = 10

export interface UnattachedWatchOptions {
  readonly redis: Commander
  readonly namespace: string
  /** In ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** Called for the first such Workers of a queue, and again for those that join them. Must not throw or block. */
  readonly onFound: (queue: string, found: UnattachedWorkers) => void
  /** Called when there are none any more, with those that were there last. Must not throw or block. */
  readonly onGone: (queue: string, found: UnattachedWorkers) => void
}

export interface UnattachedWatch {
  /** Notes which tasks such Workers hold, as the check for lost tasks has found. */
  note(queue: string, held: Checked['unattached']): void
  /**
   * Looks for traces in the queue, and reports a change. Resolves to whether the queue's index has to be compared with its tasks, because
   * of what such Workers have done since the last comparison. Takes one round trip if there is no trace.
   */
  look(queue: string): Promise<boolean>
}

/** What the traces mean for what is known. */
export function changeOf(
  known: Pick<UnattachedWorkers, 'seenAt'> | undefined,
  isSeen: boolean,
  now: number,
): 'begun' | 'continued' | 'ended' | 'none' {
  if (isSeen) return known === undefined ? 'begun' : 'continued'
  return known !== undefined && now - known.seenAt >= GONE_AFTER_MS ? 'ended' : 'none'
}

interface QueueWatch {
  heldAt: number
  held: Checked['unattached']
  listedAt: number
  comparedAt: number
}

export function createUnattachedWatch(options: UnattachedWatchOptions): UnattachedWatch {
  const { redis, namespace, now, onFound, onGone } = options
  const watches = new Map<string, QueueWatch>()
  const watchOf = (queue: string): QueueWatch => {
    const found = watches.get(queue) ?? { heldAt: 0, held: new Map(), listedAt: 0, comparedAt: now() }
    watches.set(queue, found)
    return found
  }

  return {
    note(queue, held) {
      Object.assign(watchOf(queue), { held, heldAt: now() })
    },

    async look(queue) {
      const keys = queueKeys(namespace, queue)
      const [marks, stored] = await Promise.all([redis.exists(keys.stalledCheck), redis.get(keys.unattached)])
      const watch = watchOf(queue)
      const at = now()
      const known = decodeUnattached(stored)
      const held = at - watch.heldAt <= HELD_MS ? watch.held : new Map<string, string>()
      const change = changeOf(known, marks > 0 || held.size > 0, at)
      if (change === 'none') return false
      if (known !== undefined && change === 'ended') {
        await redis.del(keys.unattached)
        watches.delete(queue)
        onGone(queue, known)
        return true
      }
      let { since = at, workers = [], tasks = 0, ids = [] } = known ?? {}
      const before = workers
      if (change === 'begun' || at - watch.listedAt >= LIST_EVERY_MS) {
        watch.listedAt = at
        const listed = await listWorkers(redis, namespace, queue)
        // The traces of a Worker outlast its connections.
        if (listed.length > 0) workers = listed
      }
      if (workers.length === 0) workers = [...new Set(held.values())].filter((name) => name !== '')
      if (held.size > 0 && held.size >= tasks) [tasks, ids] = [held.size, [...held.keys()].slice(0, MAX_IDS)]
      const found: UnattachedWorkers = { since, seenAt: at, workers, tasks, ids }
      await redis.set(keys.unattached, JSON.stringify(found), 'PX', KEPT_MS)
      if (change === 'begun' || hasJoined(workers, before)) onFound(queue, found)
      const isDue = at - watch.comparedAt >= COMPARE_EVERY_MS
      if (isDue) watch.comparedAt = at
      return isDue
    },
  }
}

/** Only Bullpen writes the key. */
export function decodeUnattached(stored: string | null): UnattachedWorkers | undefined {
  return stored === null ? undefined : (JSON.parse(stored) as UnattachedWorkers)
}

/** A Worker that has reconnected has another port. */
function hasJoined(workers: readonly string[], before: readonly string[]): boolean {
  const known = new Set(before.map(withoutPort))
  return workers.some((each) => !known.has(withoutPort(each)))
}

const withoutPort = (worker: string): string => worker.replace(/:\d+$/, '')

/**
 * Returns the Workers of a queue that are not of the fleet, each with its name, if it has one, and its address. These include attached
 * Workers, whose connections look the same. Returns none if Redis does not permit CLIENT LIST. Takes one round trip.
 */
async function listWorkers(redis: Commander, namespace: string, queue: string): Promise<readonly string[]> {
  const [fleet, ...lists] = await Promise.all([
    redis.zrange(fleetKeys(namespace).heartbeats, 0, '-1'),
    ...serversOf(redis).map(([, server]) => unlessRefused(server.client('LIST') as Promise<string>)),
  ])
  const place = { prefix: prefixOf(namespace, queue), name: queue }
  return (
    lists
      .map((list = '') => workerConnections(list, place).filter(({ name }) => !fleet.includes(name)))
      // In a cluster, a Worker waits at the node of the queue, and may be connected to the others.
      .reduce((most, each) => (each.length > most.length ? each : most), [])
      .map(({ name, address }) => (name === '' ? address : `${name} at ${address}`))
  )
}
