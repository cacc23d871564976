// Registers groups and pipeline runs for the leader, which looks at each of them when it is due: to enqueue members and deliver follow-up
// work that a dead process has left, and to cancel groups and runs whose total timeout has passed.
//
// The registry and the group may be on different nodes of a cluster, so a group is registered before it is changed. The leader looks
// at every unfinished group at least once a minute, in case it has looked between the two.
import type { GroupId, RunId } from '@bullpen/contract'
import { readGroupId } from '@bullpen/contract/internal'
import { groupsKey } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

/** How long after a change the leader looks at the group, in ms. By then, the process that has changed it is usually done. */
export const VISIT_AFTER_MS = 5_000
/** How often the leader looks at an unfinished group, in ms. */
export const VISIT_EVERY_MS = 60_000

/** Lets the leader look at a group at this time or earlier, in ms since 1970. Takes one round trip. */
export async function registerGroup(
  redis: Commander,
  namespace: string,
  id: GroupId | RunId,
  at: number,
): Promise<void> {
  await redis.zadd(groupsKey(namespace), 'LT', String(at), id)
}

/** Returns up to `limit` groups and runs at which the leader must look by now, the longest overdue first. Takes one round trip. */
export async function dueGroups(
  redis: Commander,
  namespace: string,
  now: number,
  limit: number,
): Promise<readonly string[]> {
  return redis.zrangebyscore(groupsKey(namespace), '-inf', String(now), 'LIMIT', 0, limit)
}

/** Sets when the leader looks at a registered group next, in ms since 1970. */
export async function postponeVisit(
  redis: Commander,
  namespace: string,
  id: GroupId | RunId,
  at: number,
): Promise<void> {
  await redis.zadd(groupsKey(namespace), 'XX', String(at), id)
}

/** Lets the leader forget a group. */
export async function forgetGroup(redis: Commander, namespace: string, id: GroupId | RunId): Promise<void> {
  await redis.zrem(groupsKey(namespace), id)
}

/** Returns the number of registered groups, without runs. Takes one round trip, and time in proportion to the registered ids. */
export async function countGroups(redis: Commander, namespace: string): Promise<number> {
  return (await registeredGroups(redis, namespace)).filter((id) => readGroupId(id) !== undefined).length
}

/** Returns the ids of all registered groups and runs. Takes one round trip. */
export async function registeredGroups(redis: Commander, namespace: string): Promise<readonly string[]> {
  return redis.zrange(groupsKey(namespace), '0', '-1')
}
