// Reads and changes the locks of tasks, as their expiry or another worker would. The tests and their Redis share a clock, which is not
// that of `Date` in tests that change it.
import type { QueueKeys } from '../keys.ts'

type Keys = Pick<QueueKeys, 'job' | 'lock'>

/** The commands that the functions need, which ioredis and BullMQ's own client have. */
interface Client {
  hset(key: string, fields: Record<string, string>): Promise<unknown>
  hget(key: string, field: string): Promise<string | null>
  hdel(key: string, field: string): Promise<unknown>
  get(key: string): Promise<string | null>
  pttl(key: string): Promise<number>
  del(key: string): Promise<unknown>
}

const LONG_MS = 600_000
const now = (): number => Math.floor(performance.timeOrigin + performance.now())

/** Locks a task as Bullpen does (../store/lua/includes/task/lock.lua). */
export function lockTask(
  redis: Pick<Client, 'hset'>,
  { job }: Pick<Keys, 'job'>,
  id: string,
  token = 'token',
  ms = LONG_MS,
): Promise<unknown> {
  return redis.hset(job(id), { lock: `${now() + ms} ${token}` })
}

/** Gives a task that is locked to another worker. */
export async function takeLock(redis: Pick<Client, 'hset' | 'hget'>, keys: Pick<Keys, 'job'>, id: string, ms?: number) {
  if (await redis.hget(keys.job(id), 'lock')) await lockTask(redis, keys, id, 'another worker', ms)
}

/** Takes the locks of tasks away, whether Bullpen or BullMQ has stored them. */
export async function unlockTasks(redis: Pick<Client, 'hdel' | 'del'>, { job, lock }: Keys, ...ids: string[]) {
  for (const id of ids) {
    await redis.hdel(job(id), 'lock')
    await redis.del(lock(id))
  }
}

/** Returns the token of a task's lock, or null. */
export async function lockOwner(redis: Pick<Client, 'hget' | 'get'>, { job, lock }: Keys, id: string) {
  const [, endsAt, token] = /^(\d+) (.*)$/.exec((await redis.hget(job(id), 'lock')) ?? '') ?? []
  return Number(endsAt) > now() ? (token ?? null) : redis.get(lock(id))
}

/** Returns in how many ms a task's lock expires, or a negative number if it has none. */
export async function lockLeftMs(redis: Pick<Client, 'hget' | 'pttl'>, { job, lock }: Keys, id: string) {
  const endsAt = Number.parseInt((await redis.hget(job(id), 'lock')) ?? '', 10)
  return endsAt > now() ? endsAt - now() : redis.pttl(lock(id))
}
