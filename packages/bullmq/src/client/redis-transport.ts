// Implements a client's transport over Redis. The client enqueues tasks in its own process, with the same script as the API.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  BullpenError,
  type Catalogue,
  type Dropped,
  type Duration,
  type EnqueueRequest,
  type Log,
  milliseconds,
} from '@bullpen/contract'
import {
  cancelOneSchema,
  DEFAULT_KEPT_EVENTS,
  type EnqueuedTask,
  ProblemError,
  readTraceContext,
  type TaskTransport,
  type TransportEnqueue,
  taskId,
  taskLinks,
  taskView,
} from '@bullpen/contract/internal'
import type { PayloadCodec, ProducerTracing } from '@bullpen/engine'
import {
  createBlockedCallers,
  createEventFeeds,
  explained,
  openTaskStream,
  outcomeNow,
  planFollowUps,
  queuesWithEvents,
  stoppable,
  taskNotFound,
  tracedBroker,
} from '@bullpen/engine/internal'
import { settlesWithin, systemClock } from '@bullpen/engine/node'
import { openBroker } from '../broker/broker.ts'
import { openSkewMonitor } from '../clock/clock-skew.ts'
import { afterTime, unlessAborted } from './aborts.ts'
import { bulkPreparer } from './bulk.ts'
import { checkRequest } from './check-request.ts'
import { eventStreamTry } from './event-stream-try.ts'
import { groupTransport } from './group-transport.ts'
import { type GivenKey, type PlannedTask, taskPlanner } from './planned-task.ts'
import { problemOf } from './redis-problem.ts'
import { runTransport } from './run-transport.ts'
import { taskStorer } from './store-task.ts'

export interface RedisOptions {
  /** The tasks that the client can enqueue. Each input is validated against its task's definition. */
  readonly catalogue: Catalogue
  /** Must be the same as the workers' namespace. Defaults to 'bullpen'. */
  readonly namespace?: string
  /** Must be the same as the workers' codec. By default, payloads are stored unencoded. */
  readonly codec?: PayloadCodec
  /** The maximum size of one task's stored data, in bytes. Defaults to 262,144 plus 16,384 for labels, times and ids. */
  readonly sizeLimit?: number
  /** The percentage of Redis's memory at which tasks are refused with `redis_full`. Defaults to 80. */
  readonly memoryWatermark?: number
  /**
   * The limit for the unfinished tasks of one queue, as a percentage of Redis's memory, if neither the queue's definition nor a
   * command sets `maxBytes`. Beyond this limit, tasks are refused with `queue_full`. Defaults to 50.
   */
  readonly queueMemoryShare?: number
  /**
   * The percentage of Redis's memory that idempotency keys may take. Beyond this share, calls with a new key are refused with
   * `idempotency_full`. Defaults to 25.
   */
  readonly idempotencyMemoryShare?: number
  /**
   * Whether tasks may be stored on a server that may delete them because its `maxmemory-policy` is not `noeviction`. Defaults to
   * false.
   */
  readonly allowEviction?: boolean
  /**
   * How long an enqueue with `durability: 'replicated'` waits until a replica of Redis has the task. After that, it fails with
   * `not_replicated`. Defaults to '1s'.
   */
  readonly replicationTimeout?: Duration
  /** How long a caller's idempotency key is remembered if the queue's definition does not set this. Defaults to '24h'. */
  readonly idempotencyLife?: Duration
  /** An id that appears in the log lines of the tasks that the client enqueues. */
  readonly correlationId?: string
  /**
   * Records a span for each call that enqueues tasks, such as `openTelemetry()` of `@bullpen/telemetry/opentelemetry`. With
   * `{ current: () => ({ traceparent }) }`, tasks belong to that trace, and nothing is recorded. By default, tasks belong to no trace.
   */
  readonly tracing?: ProducerTracing
  /** Receives a line when Redis becomes unreachable, and another when it is reachable again. By default, nothing is logged. */
  readonly log?: Log
}

const DEFAULT_SIZE_LIMIT = 262_144 + 16_384

/** How long the first calls wait for the connection and for Redis's time, in ms. */
const CONNECT_WITHIN_MS = 1_000
const CONNECT_RETRY_MS = 20

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * Opens the transport to the Redis at `url`, such as `'redis://127.0.0.1:6379'`, without waiting for Redis. An enqueue takes one
 * round trip. The task's id is generated beforehand, so a failed enqueue can be repeated safely: if an earlier try stored the task,
 * nothing is stored. If that task has ended and been removed, this holds only for 20 s after the first try. The connections keep
 * the process alive until the client is closed. This process does not do any housekeeping, so at least one worker or API must run.
 *
 * @throws BullpenError `invalid_configuration` if `url` is not a Redis URL, or `invalid_duration`, and TypeError if there is no
 * catalogue.
 */
export function redis(url: string, options: RedisOptions): TaskTransport {
  // Plain JavaScript may omit the options.
  if (options?.catalogue === undefined) {
    throw new TypeError('redis: expected a catalogue, as in redis(url, { catalogue })')
  }
  const { catalogue, namespace = 'bullpen', codec, sizeLimit = DEFAULT_SIZE_LIMIT, log = SILENT } = options
  const idempotencyLifeS = milliseconds(options.idempotencyLife ?? '24h', 'idempotencyLife') / 1_000
  const skew = openSkewMonitor({ redisUrl: url, namespace, log })
  const { queues } = catalogue
  const { now } = skew
  const { memoryWatermark, queueMemoryShare, idempotencyMemoryShare, allowEviction } = options
  const replicationTimeoutMs = milliseconds(options.replicationTimeout ?? '1s', 'replicationTimeout')
  const admission = { memoryWatermark, queueMemoryShare, idempotencyMemoryShare, allowEviction, replicationTimeoutMs }
  const { correlationId, tracing } = options
  const broker = tracedBroker(
    openBroker({ redisUrl: url, namespace, queues, sizeLimit, codec, log, now, leads: false, ...admission }),
    tracing,
  )
  const traceContext = () => tracing && readTraceContext({ ...tracing.current() })
  const plan = taskPlanner({ catalogue, now, correlationId, traceContext, idempotencyLifeS })
  const blocked = createBlockedCallers(systemClock)
  const feeds = createEventFeeds({
    stream: (queue) => broker.events(queue),
    limit(queue) {
      const { events } = catalogue.queue(queue)
      return events === false ? DEFAULT_KEPT_EVENTS.count : events.count
    },
    after: systemClock.after,
  })
  const store = taskStorer(broker, blocked)
  const prepareBulk = bulkPreparer({ broker, plan, store, blocked })
  let isClosed = false
  let isReady = false
  const connecting = connect().then(() => {
    isReady = true
  })

  /** Waits until Redis responds and its time is known, so that the first calls do not fail. If Redis is down, resolves after 1 s. */
  async function connect(): Promise<void> {
    const deadline = performance.now() + CONNECT_WITHIN_MS
    const isConnected = () =>
      broker.ping().then(
        () => true,
        () => false,
      )
    while (!isClosed && performance.now() < deadline && !(await isConnected())) await sleep(CONNECT_RETRY_MS)
    await settlesWithin(skew.measured, Math.max(0, deadline - performance.now()))
  }

  /** Runs a call once. `mayBeStored` returns the id of the task that the call may have stored. */
  async function once<T>(
    run: () => Promise<T>,
    signal: AbortSignal | undefined,
    mayBeStored: () => string | undefined = () => undefined,
  ): Promise<T> {
    if (isClosed) throw closed()
    try {
      if (!isReady) await unlessAborted(connecting, signal)
      return await unlessAborted(run(), signal)
    } catch (error) {
      throw problemOf(error, mayBeStored())
    }
  }

  /** @throws ProblemError `unknown_task`, `invalid_input` or `invalid_request`. */
  function planOrThrow(request: EnqueueRequest, given: TransportEnqueue): PlannedTask {
    try {
      return plan(request, keyIn(given))
    } catch (error) {
      throw problemOf(error, undefined)
    }
  }

  return {
    enqueue(request, given) {
      const planned = planOrThrow(request, given)
      const stored = async (signal: AbortSignal | undefined): Promise<EnqueuedTask | Dropped> => {
        const enqueued = await store(planned, signal)
        return enqueued === undefined ? { action: 'dropped' } : planned.resultOf(enqueued)
      }
      return (signal) => once(() => stored(signal), signal, planned.mayBeStored)
    },

    enqueueBulk(requests, given) {
      const { send, mayBeStored } = prepareBulk(requests, { idempotency: keyIn(given), atomic: given.atomic })
      return (signal) => once(() => send(signal), signal, mayBeStored)
    },

    task(text, waitMs) {
      const show = async (signal: AbortSignal | undefined) => {
        const id = taskId(text)
        const record =
          waitMs === 0
            ? await broker.find(id)
            : await afterTime(waitMs, signal, (end) => broker.waitUntilFinished(id, end))
        if (record === undefined) throw taskNotFound(id)
        return taskView(await explained(broker, record))
      }
      return (signal) => once(() => show(signal), signal)
    },

    events: (text) =>
      eventStreamTry({
        once,
        async open(after, signal) {
          const id = taskId(text)
          const check = ({ task }: { readonly task: string }): void => {
            if (!catalogue.has(task) || catalogue.get(task).events) return
            throw new BullpenError(
              'no_events',
              `the tasks of ${task} have no events; set \`events: true\` in the definition`,
            )
          }
          return openTaskStream({ feeds, broker }, { id, after, signal, check })
        },
      }),

    cancel(text, { waitMs, by }) {
      const cancel = async (signal: AbortSignal | undefined) => {
        const id = taskId(text)
        checkRequest(cancelOneSchema, { by })
        const found = await broker.find(id)
        if (found === undefined) throw taskNotFound(id)
        const answer = await broker.cancel(id, { stoppable: stoppable(catalogue, found.task), by })
        if (answer === 'not_found') throw taskNotFound(id)
        const record =
          answer === 'cancelling' && waitMs > 0
            ? await afterTime(waitMs, signal, (end) => broker.waitUntilFinished(id, end))
            : await broker.find(id)
        const { status } = record ?? found
        return { id, outcome: outcomeNow(answer, record), status, links: taskLinks(id) }
      }
      return (signal) => once(() => cancel(signal), signal)
    },

    groups: groupTransport({
      ...{ broker, feeds, plan, once },
      queues: queuesWithEvents(catalogue),
      planFollowUps: (settings) => planFollowUps(settings, { catalogue, correlationId, traceContext: traceContext() }),
    }),

    runs: runTransport({ broker, catalogue, correlationId, traceContext, now, once }),

    async close() {
      isClosed = true
      feeds.close()
      skew.close()
      await broker.close()
    },
  }
}

function closed(): ProblemError {
  const detail = 'the client is closed; create a new one with createClient'
  return new ProblemError({ code: 'wrong_state', outcome: 'refused', detail })
}

function keyIn({ idempotencyKey: key, idempotencyLifeS: life }: TransportEnqueue): GivenKey | undefined {
  return key === undefined ? undefined : { key, life }
}
