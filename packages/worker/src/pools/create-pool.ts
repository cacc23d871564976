// Creates a worker's pools. Each one is the engine's pool with a consumer on Redis.
import type { BullmqBroker } from '@bullpen/bullmq'
import { type ConnectionWatch, openConsumer, type SkewMonitor } from '@bullpen/bullmq/internal'
import { redisUrlOf, settingsOfPool, type WorkerSettings } from '@bullpen/config'
import { type Catalogue, type Log, milliseconds, type Resources } from '@bullpen/contract'
import type { EventSink, PayloadCodec, Tracing } from '@bullpen/engine'
import {
  type AsyncContext,
  capacitiesOf,
  createPool,
  createQuarantine,
  type OnlineGroup,
  type Pool,
  type QuarantineProcessPool,
  type Registry,
} from '@bullpen/engine/internal'
import { clockOf, sha256 } from '@bullpen/engine/node'
import { restoringLog } from '../kept-built-ins.ts'
import { eventsAgeOf, retentionOf } from './retention.ts'

export interface PoolFactoryOptions {
  readonly settings: WorkerSettings
  readonly catalogue: Catalogue
  readonly registry: Registry
  readonly context: AsyncContext
  readonly clock: SkewMonitor
  readonly sink: EventSink
  readonly tracing: Tracing | undefined
  /** The worker's name in attempt records, made of the host, the process id and a random part. */
  readonly worker: string
  readonly codec: PayloadCodec | undefined
  readonly resources: Resources
  readonly tasks: Pick<BullmqBroker, 'enqueue' | 'forward' | 'runs'>
  readonly watch: ConnectionWatch
  /** Called if locks of a queue's tasks are renewed late. */
  readonly onLateLocks: (queue: string, locks: number) => void
  readonly onLockThreadEnded: () => void
  readonly parent: AbortSignal | undefined
  /** The worker's child processes for quarantined tasks. Undefined if there are none. */
  readonly quarantineProcesses: QuarantineProcessPool | undefined
  /** The only group whose tasks the pools run. If undefined, they run all tasks of their queues. */
  readonly onlineGroup: OnlineGroup | undefined
  readonly log: Log
  /** Creates the log of an attempt. */
  readonly logFor: (fields: object) => Log
}

export function poolFactory(options: PoolFactoryOptions): (queue: string, concurrency: number) => Pool {
  const { settings, catalogue, registry, context, clock, sink, worker, codec, resources, tasks, parent, log } = options
  const { onlineGroup } = options
  const { namespace, eventLoopStallLimit } = settings
  const redisUrl = redisUrlOf(settings)
  const eventLoopStallLimitMs = eventLoopStallLimit === 'none' ? undefined : milliseconds(eventLoopStallLimit)
  const quarantine = createQuarantine({
    clock: clockOf(clock),
    random: Math.random,
    maxDeaths: settings.maxDeaths,
    maxProcesses: settings.quarantineProcesses,
    processes: options.quarantineProcesses,
  })
  return (queue, concurrency) => {
    const own = settingsOfPool(settings, queue)
    return createPool({
      quarantine,
      queue,
      concurrency,
      maxStuckHandlers: own.maxStuckHandlers,
      graceMs: milliseconds(own.grace),
      parent,
      consumer: (work, fed) =>
        openConsumer(
          {
            queue,
            catalogueQueues: catalogue.queues,
            concurrency,
            namespace,
            redisUrl,
            watch: options.watch,
            worker,
            codec,
            // A pool that replaces a drained one is limited as well.
            candidates: onlineGroup?.candidates(queue),
            retention: retentionOf(settings, catalogue.queue(queue).retention),
            eventsAgeMs: eventsAgeOf(catalogue.queue(queue)),
            keyLimits: catalogue.queue(queue).perConcurrencyKey,
            capacities: capacitiesOf(catalogue, queue),
            breakers: catalogue.queue(queue).breakers,
            eventLoopStallLimitMs,
            clock,
            onFollowed: () => tasks.forward(queue),
            onLateLocks: (locks) => options.onLateLocks(queue, locks),
            onLockThreadEnded: options.onLockThreadEnded,
            log: restoringLog(log),
          },
          work,
          fed,
        ),
      host: {
        registry,
        context,
        clock: clockOf(clock),
        random: Math.random,
        sink,
        tracing: options.tracing,
        enqueue: (task) => tasks.enqueue(task),
        runs: tasks.runs,
        sha256,
        maxOutputBytes: own.maxOutputBytes,
        worker,
        resources,
        logFor: options.logFor,
      },
    })
  }
}
