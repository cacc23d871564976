// Registers groups, or pipeline runs, for the leader, which looks at each of them when it is due: to deliver what a dead process has left,
// and to cancel those whose total timeout has passed. Groups and runs have a registry each, so that each can be counted and listed alone.
//
// The registry and a registered group or run may be on different nodes of a cluster, so it is registered before it is changed. The leader
// looks at every unfinished one regularly, in case it has looked between the two.
import type { Commander } from '../scripts/script.ts'

export interface VisitRegistry<Id extends string> {
  /** Lets the leader look at this time or earlier, in ms since 1970. */
  register(id: Id, at: number): Promise<void>
  /** Sets when the leader looks next, in ms since 1970, if the group or run is still registered. */
  reschedule(id: Id, at: number): Promise<void>
  /** Returns up to `limit` ids at which the leader must look by now, the longest overdue first. */
  due(now: number, limit: number): Promise<readonly Id[]>
  /** Lets the leader forget a group or run. */
  forget(id: Id): Promise<void>
  /** Takes constant time. */
  count(): Promise<number>
  /** Returns all ids, the oldest first, because an id begins with the time of its creation. */
  ids(): Promise<readonly Id[]>
}

/** The longest time between two visits to something unfinished, in ms. Its creator may have registered it before it existed. */
export const VISIT_EVERY_MS = 60_000

/** How many groups or runs one round looks at. The others follow in the next round. */
const VISITS_PER_ROUND = 100

/** Looks at what is due, one after the other, until `isOver`. Takes one round trip if nothing is due. */
export type VisitDue = (isOver: () => boolean) => Promise<void>

export function visitDue<Id extends string>(
  registry: Pick<VisitRegistry<Id>, 'due'>,
  now: () => number,
  visit: (id: Id, isOver: () => boolean) => Promise<void>,
): VisitDue {
  return async (isOver) => {
    for (const id of await registry.due(now(), VISITS_PER_ROUND)) {
      if (isOver()) return
      await visit(id, isOver)
    }
  }
}

/** Keeps a registry in the sorted set `key`. Every call takes one round trip. */
export function visitRegistry<Id extends string>(redis: Commander, key: string): VisitRegistry<Id> {
  return {
    async register(id, at) {
      await redis.zadd(key, 'LT', String(at), id)
    },
    async reschedule(id, at) {
      await redis.zadd(key, 'XX', String(at), id)
    },
    // Only Bullpen writes the sorted set.
    due: async (now, limit) => (await redis.zrangebyscore(key, '-inf', String(now), 'LIMIT', 0, limit)) as Id[],
    async forget(id) {
      await redis.zrem(key, id)
    },
    count: () => redis.zcard(key),
    ids: async () => ((await redis.zrange(key, '0', '-1')) as Id[]).toSorted(),
  }
}
