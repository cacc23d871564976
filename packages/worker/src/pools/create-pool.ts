// Makes the pools of a process: the engine's, fed from Redis.

import { openFeed, type SkewWatch } from '@bullpen/bullmq'
import type { WorkerSettings } from '@bullpen/config'
import { type Log, milliseconds, type Resources } from '@bullpen/contract'
import { type AsyncContext, type Broker, type EventSink, makePool, type Pool, type Registry } from '@bullpen/engine'
import { clockOf, sha256 } from '@bullpen/engine/node'

export interface PoolMakerOptions {
  readonly settings: WorkerSettings
  readonly registry: Registry
  readonly context: AsyncContext
  readonly clock: SkewWatch
  readonly sink: EventSink
  /** For the record: host, process id, and what tells it from others. */
  readonly process: string
  readonly resources: Resources
  readonly tasks: Pick<Broker, 'enqueue'>
  readonly parent: AbortSignal | undefined
  readonly log: Log & { child(fields: object): Log }
}

export function poolMaker(options: PoolMakerOptions): (queue: string, concurrency: number) => Pool {
  const { settings, registry, context, clock, sink, process, resources, tasks, parent, log } = options
  const { namespace, redisUrl, maxLoopBlock } = settings
  const keepCompletedMs = milliseconds(settings.keepCompleted)
  const maxLoopBlockMs = maxLoopBlock === 'none' ? undefined : milliseconds(maxLoopBlock)
  return (queue, concurrency) =>
    makePool({
      queue,
      concurrency,
      maxLeftovers: settings.maxLeftovers,
      graceMs: milliseconds(settings.grace),
      parent,
      feed: (work, fed) =>
        openFeed({ queue, concurrency, namespace, redisUrl, keepCompletedMs, maxLoopBlockMs, clock, log }, work, fed),
      host: {
        registry,
        context,
        clock: clockOf(clock),
        random: Math.random,
        sink,
        enqueue: (task) => tasks.enqueue(task),
        sha256,
        outputLimitBytes: settings.outputLimit,
        process,
        resources,
        logFor: (fields) => log.child(fields),
      },
    })
}
