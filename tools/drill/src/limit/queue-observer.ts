// Observes how many tasks of a queue are waiting or scheduled, about every millisecond. Only the drill's own cancels lower that
// number.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import { Redis } from 'ioredis'
import { NAMESPACE } from '../environment/programs-setup.ts'

export interface QueueObserver {
  /** Returns how many tasks are waiting or scheduled now. */
  size(): Promise<number>
  /** Returns the ids of the tasks that are waiting or scheduled. */
  ids(): Promise<readonly TaskId[]>
  /** Returns the ids of the waiting tasks without a priority, in the order in which they were stored. */
  waiting(): Promise<readonly TaskId[]>
  /** Returns the highest number of tasks so far. */
  highest(): number
  /** @throws Error if Redis has refused to reply during the observation. */
  close(): Promise<void>
}

const EVERY_MS = 1
/** Reads the size of all three places at the same moment. */
const SIZE = `return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('ZCARD', KEYS[3])`

export function observeQueue(redisUrl: string, queue: string): QueueObserver {
  const redis = new Redis(redisUrl)
  const base = `{${NAMESPACE}.${queue}}:${queue}:`
  const [wait, prioritized, delayed] = [`${base}wait`, `${base}prioritized`, `${base}delayed`]
  const size = async (): Promise<number> => Number(await redis.eval(SIZE, 3, wait, prioritized, delayed))
  let highest = 0
  let isOver = false

  const observing = (async () => {
    while (!isOver) {
      highest = Math.max(highest, await size())
      await sleep(EVERY_MS)
    }
  })()
  // A failure is reported when the observation ends.
  observing.catch(() => {})

  return {
    size,
    async ids() {
      const places = [redis.lrange(wait, 0, -1), redis.zrange(prioritized, '0', '-1'), redis.zrange(delayed, '0', '-1')]
      return (await Promise.all(places)).flat() as TaskId[]
    },
    // BullMQ adds new tasks at the head.
    waiting: async () => (await redis.lrange(wait, 0, -1)).toReversed() as TaskId[],
    highest: () => highest,
    async close() {
      isOver = true
      await observing.finally(() => redis.disconnect())
    },
  }
}
