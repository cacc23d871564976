// Stores the registry of a namespace's queues. The leader works on every registered queue, whatever its own catalogue contains.
import { FINAL_STATUSES } from '@bullpen/contract/internal'
import type { Retention } from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import { leaderKeys, queueKeys, SCHEMA_VERSION } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { omitMoveEvents } from '../store/backend-events.ts'
import { registerQueuesScript } from '../store/scripts.ts'

export interface RegisteredQueue {
  readonly name: string
  /**
   * How long the queue's ended tasks are kept. Undefined if no consumer has stored a retention, in which case the leader does not
   * remove any of the queue's tasks.
   */
  readonly retention?: Retention | undefined
  /**
   * How long the queue's events are kept, in ms. Undefined if no consumer has stored it, in which case events are dropped only
   * because of their number.
   */
  readonly eventsAgeMs?: number | undefined
}

export interface Registering {
  /**
   * Whether the retentions replace those already stored. They do when a consumer opens, but not when a registration is repeated,
   * so that the consumer that opened last decides.
   */
  readonly replaces: boolean
}

/**
 * Registers queues. Returns false, without writing anything, if the namespace does not have this version's schema or has lost its
 * data. The call is idempotent, and takes two round trips. The first one is atomic.
 */
export async function registerQueues(
  redis: Commander,
  namespace: string,
  queues: readonly RegisteredQueue[],
  { replaces }: Registering,
): Promise<boolean> {
  const args = { schemaVersion: SCHEMA_VERSION, replaces: replaces ? '1' : '' }
  const registered = queues.flatMap((queue) => [queue.name, encodeRegistered(queue)])
  if ((await runScript(redis, registerQueuesScript, leaderKeys(namespace), args, registered)) !== 1) return false
  // This only saves time. If Redis refuses it, the next registration asks again.
  await Promise.all(queues.map(({ name }) => omitMoveEvents(redis, queueKeys(namespace, name).meta).catch(() => {})))
  return true
}

/** Returns all registered queues. Takes one round trip. */
export async function registeredQueues(redis: Commander, namespace: string): Promise<readonly RegisteredQueue[]> {
  const stored = await redis.hgetall(leaderKeys(namespace).registry)
  return Object.entries(stored).map(([name, text]) => ({ name, ...decodeRegistered(text) }))
}

/** Encodes what the registry stores of a queue: as JSON, or as '' if there is nothing to store. */
function encodeRegistered({ retention, eventsAgeMs }: RegisteredQueue): string {
  if (retention === undefined) return ''
  return JSON.stringify(eventsAgeMs === undefined ? retention : { ...retention, events: { ageMs: eventsAgeMs } })
}

/** Encodes a retention for scripts: as JSON, or as '' if there is none. */
export function encodeRetention(retention: Retention | undefined): string {
  return retention === undefined ? '' : JSON.stringify(retention)
}

/** If this version of Bullpen can't read the retention, leaves it out, so that no task is removed because of it. */
function decodeRegistered(text: string): Pick<RegisteredQueue, 'retention' | 'eventsAgeMs'> {
  const { data } = registeredSchema.safeParse(parseJson(text))
  if (data === undefined) return {}
  const { events, ...retention } = data
  return { retention: retentionSchema.safeParse(retention).data, eventsAgeMs: events?.ageMs }
}

const limit = z.number().nonnegative().optional()
const retentionSchema = z.partialRecord(z.enum(FINAL_STATUSES), z.object({ ageMs: limit, count: limit }))
const registeredSchema = z.looseObject({ events: z.object({ ageMs: limit }).optional() })
