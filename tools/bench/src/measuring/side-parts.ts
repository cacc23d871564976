// Opens what a measurement of one side uses: a namespace of its own, whose keys are deleted afterwards, and processes that end with it.
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { deleteKeys } from './delete-keys.ts'
import { type Part, startPart } from './part.ts'

export interface SideParts extends AsyncDisposable {
  readonly redis: Redis
  readonly namespace: string
  /** Starts the program at this address in a process of its own. */
  start<Ready>(program: URL, options: object): Promise<Part<Ready>>
}

export function openSideParts(redisUrl: string): SideParts {
  const namespace = `bench-${randomUUID().slice(0, 8)}`
  const opened = new AsyncDisposableStack()
  const redis = opened.adopt(new Redis(redisUrl), (each) => each.disconnect())
  opened.defer(() => deleteKeys(redis, `{${namespace}*`))
  // The benchmarks' queue has the events that any queue has once Bullpen has used it for 15 s (packages/bullmq, store/backend-events.ts).
  redis.hset(`{${namespace}.bench}:bench:meta`, 'allEventsUntil', 1).catch(() => {})
  return {
    redis,
    namespace,
    start: async <Ready>(program: URL, options: object) =>
      opened.adopt(await startPart<Ready>(fileURLToPath(program), options), (part) => part.stop()),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
