// Measures how much of Redis's memory a waiting task takes if its concurrency key takes turns, compared with one without a key.
import { openBroker } from '@bullpen/bullmq'
import { Redis } from 'ioredis'
import { untilReachable } from '../measuring/reachable.ts'
import { measureBytes } from '../memory/bytes-per-task.ts'
import { atListpackValues, LISTPACK_SETTING } from '../memory/listpack-values.ts'
import { benchTask, catalogue, plainTask, turnTask } from './workload.ts'

export interface LaneMemoryOptions {
  readonly redisUrl: string
  readonly keys: number
  /** How many tasks wait. */
  readonly tasks: number
}

export interface LaneMemory {
  readonly bench: 'lane memory'
  /** How many concurrency keys the tasks have, or 0. */
  readonly keys: number
  /** Whether the keys take turns. If not, only the tasks' own fields contain the key. */
  readonly turns: boolean
  readonly tasks: number
  /** The server's `hash-max-listpack-value`. Redis's default is 64. */
  readonly listpackValue: number
  readonly bytesPerTask: number
  /** Divided by that of a task without a concurrency key, with the same setting. */
  readonly ratio: number
}

type Measured = Pick<LaneMemory, 'keys' | 'turns' | 'tasks'>

/**
 * Yields the memory of tasks without a key, with keys, with keys that take turns, and with one such key each, for Redis's default settings
 * and for those that Bullpen recommends. Deletes all data of the server.
 */
export async function* benchLaneMemory({ redisUrl, keys, tasks }: LaneMemoryOptions): AsyncGenerator<LaneMemory> {
  const cases: readonly Measured[] = [
    { keys: 0, turns: false, tasks },
    { keys, turns: false, tasks },
    { keys, turns: true, tasks },
    { keys: tasks, turns: true, tasks },
  ]
  const redis = new Redis(redisUrl)
  try {
    yield* atListpackValues(redis, async function* (listpackValue) {
      let plain: number | undefined
      for (const each of cases) {
        const bytesPerTask = await bytesOf(redis, redisUrl, each)
        plain ??= bytesPerTask
        yield { bench: 'lane memory', ...each, listpackValue, bytesPerTask, ratio: bytesPerTask / plain }
      }
    })
  } finally {
    await redis.flushall()
    redis.disconnect()
  }
}

async function bytesOf(redis: Redis, redisUrl: string, { keys, turns, tasks }: Measured): Promise<number> {
  const log = { debug() {}, info() {}, warn() {}, error: console.error }
  const options = { redisUrl, namespace: 'bench', queues: catalogue.queues, sizeLimit: 65_536, leads: false, log }
  const broker = openBroker(options)
  await untilReachable(broker)
  const definition = turns ? turnTask : plainTask
  const enqueue = (n: number) => broker.enqueue(benchTask(definition, n, keys))
  const { bytesPerTask } = await measureBytes(redis, tasks, { enqueue, close: () => broker.close() })
  return bytesPerTask
}

export function describeLaneMemory({ keys, turns, tasks, listpackValue, bytesPerTask, ratio }: LaneMemory): string {
  const lanes = keys === 0 ? 'no key' : `${keys} keys of ${tasks / keys} tasks${turns ? ' that take turns' : ''}`
  const setting = `${LISTPACK_SETTING} ${listpackValue}`
  return `memory ${setting.padEnd(28)} ${lanes.padEnd(42)} ${String(bytesPerTask).padStart(5)} bytes a task   ratio ${ratio.toFixed(3)}`
}
