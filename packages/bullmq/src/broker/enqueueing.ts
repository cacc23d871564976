// Stores tasks for a broker: checks their size and whether they are admitted, and sends one script.
import { BullpenError, type Enqueued, type ErrorCode, type QueueLimits } from '@bullpen/contract'
import { withoutEffect } from '@bullpen/contract/internal'
import type { Broker, NewTask, PayloadCodec } from '@bullpen/engine'
import { envelopeText, followUpLines, mapTasks, queueOfAll, taskBytes } from '@bullpen/engine/internal'
import type { AcknowledgedTasks } from '../acknowledged/acknowledged-tasks.ts'
import type { Admission } from '../admission/admission.ts'
import type { FleetFeatures } from '../admission/fleet-features.ts'
import type { IdempotencyMemory } from '../admission/idempotency-memory.ts'
import { assertRoom } from '../admission/member-room.ts'
import type { MemoryAdmission } from '../admission/memory-admission.ts'
import type { StartEstimates } from '../admission/start-estimates.ts'
import { commandErrors, redisErrors } from '../connection.ts'
import { mayHaveRun } from '../redis/not-sent.ts'
import type { SchemaGuard } from '../schema.ts'
import type { Commander } from '../scripts/script.ts'
import type { Admitted } from '../store/add.ts'
import type { StoredStrings } from '../store/new-task.ts'
import type { BullmqBroker } from './broker-options.ts'
import type { QueueTable } from './queue-handles.ts'

/**
 * The error codes with which a task is refused because of the state of the queue or of Redis. Tasks that are refused by full
 * queues are counted elsewhere.
 */
export const ENQUEUE_REFUSALS: readonly ErrorCode[] = [
  'queue_draining',
  'fleet_too_old',
  'redis_full',
  'idempotency_full',
  'unsafe_redis',
]

/** What the script has to know about a task that it must not store. */
const NOTHING_ADMITTED = { limits: undefined, expectedStartAt: undefined, onNotStored: undefined } as const

export interface EnqueueingOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly queues: QueueTable
  readonly schema: SchemaGuard
  readonly admission: Admission
  /** Undefined if tasks are stored although older workers could not start them. */
  readonly features: FleetFeatures | undefined
  /** Undefined if tasks are stored until Redis is full. */
  readonly memory: MemoryAdmission | undefined
  /** Undefined if records of idempotency keys are stored until Redis is full. */
  readonly records: IdempotencyMemory | undefined
  /** Undefined if the broker does not estimate when tasks start. */
  readonly starts: StartEstimates | undefined
  /** The maximum size of one task's stored data, in bytes. */
  readonly sizeLimit: number
  readonly codec: PayloadCodec | undefined
  readonly acknowledged: AcknowledgedTasks
  /** Called for each task that was refused because of the state of the queue or of Redis. */
  readonly onRefused: (refused: { readonly queue: string; readonly code: string }) => void
}

export interface Enqueueing
  extends Pick<Broker, 'enqueue' | 'enqueueBulk' | 'enqueueAll'>,
    Pick<BullmqBroker, 'limitsOf'> {
  /**
   * Checks whether these tasks could be enqueued now, without storing them. Takes one round trip for each queue that has limits, which
   * every queue has unless Redis does not report its memory. An API key's rate in a queue is not checked.
   *
   * @throws BullpenError like `enqueue`. If a single task is the reason, the error's pointer begins with that task's index.
   */
  admitMembers(tasks: readonly NewTask[]): Promise<void>
}

export function createEnqueueing(options: EnqueueingOptions): Enqueueing {
  const { redis, redisUrl, queues, schema, admission, features, memory, records, starts } = options
  const { sizeLimit, codec, acknowledged, onRefused } = options
  const withRedisErrors = redisErrors(redisUrl)
  const withCommandErrors = commandErrors(redisUrl)

  /**
   * Checks whether these tasks of one queue, whose stored strings together have `bytes` bytes, may be sent to Redis. Nearly always returns
   * undefined, which means that they may. Otherwise returns a promise that resolves once they may.
   */
  function admit(queue: string, bytes: number, tasks: readonly NewTask[]): Promise<void> | undefined {
    // A check is awaited only if it returns a promise, so that an enqueue takes a single tick.
    const checking = schema.check() ?? admission.admit(queue) ?? admitFeatures(queue, tasks)
    if (checking !== undefined) return checking.then(() => admit(queue, bytes, tasks))
    return memory?.admit(queue, bytes, tasks.length)
  }

  function admitFeatures(queue: string, tasks: readonly NewTask[]): Promise<void> | undefined {
    if (features === undefined) return undefined
    const turn = tasks.find((task) => task.turn !== undefined)?.turn
    const needs = tasks.find((task) => task.needs !== undefined)?.needs
    const services = tasks.find((task) => task.services !== undefined)?.services
    return features.admit({ queue, turn, needs, services })
  }

  /**
   * Returns the limits for an admitted task. Every queue has a maximum number of bytes, unless Redis does not report its memory.
   */
  function limitsOfTask({ queue, limits, apiKeyName, onlyExisting }: NewTask): QueueLimits | undefined {
    // The limits are checked after everything that returns another task.
    if (onlyExisting) return { ...admission.limitsOf(queue, limits, apiKeyName), maxTasks: 0 }
    return limitsOf(queue, limits, apiKeyName)
  }

  function limitsOf(queue: string, defined: QueueLimits | undefined, apiKeyName?: string): QueueLimits | undefined {
    const limits = admission.limitsOf(queue, defined, apiKeyName)
    if (limits?.maxBytes !== undefined) return limits
    const maxBytes = memory?.maxBytesOf(queue)
    return maxBytes === undefined ? limits : { ...limits, maxBytes }
  }

  function noteRefused(queue: string, error: unknown): void {
    if (error instanceof BullpenError && ENQUEUE_REFUSALS.includes(error.code)) onRefused({ queue, code: error.code })
  }

  /** Reports a refusal that Redis decides: without a record of an earlier call, the call is refused. */
  function noteUnremembered(queue: string, adding: Promise<unknown>): void {
    adding.catch((error: unknown) => noteRefused(queue, error))
  }

  /**
   * Handles the error with which tasks of one call were not admitted. If the tasks have idempotency keys, an earlier call may have stored
   * them, so `recall` looks for the records of the keys. It takes one round trip and stores nothing.
   *
   * @throws BullpenError the error, unless all tasks are remembered.
   */
  async function rememberedOr<T>(
    error: unknown,
    tasks: readonly NewTask[],
    recall: (noRoom: BullpenError) => Promise<T>,
  ): Promise<T> {
    const isRefusal = error instanceof BullpenError && ENQUEUE_REFUSALS.includes(error.code)
    try {
      if (!isRefusal || tasks.some((task) => task.idempotency === undefined)) throw error
      return await withCommandErrors(recall(error))
    } catch (reason) {
      // The error for all tasks does not point to the first one that is not remembered.
      const final = isRefusal && reason instanceof BullpenError && reason.code === error.code ? error : reason
      for (const { queue } of tasks) noteRefused(queue, final)
      throw withoutEffect(final)
    }
  }

  /** Counts the records of the tasks' idempotency keys that these adds store, or may have stored. */
  function countRecords(tasks: readonly NewTask[], adding: Promise<readonly Enqueued[]>): void {
    if (records === undefined) return
    for (const [i, task] of tasks.entries()) {
      if (task.idempotency !== undefined) {
        settleRecord(
          records.expect(task),
          adding.then((all) => all[i]),
        )
      }
    }
  }

  /** Returns the strings that are stored for a task, and their size. @throws BullpenError `payload_too_large`. */
  function storedAs(task: NewTask): StoredStrings & { readonly bytes: number } {
    // The field `lane` has the key of a task whose key takes turns (store/lua/includes/lanes/lanes.lua).
    const data = envelopeText(task.turn === undefined ? task : { ...task, concurrencyKey: undefined }, codec)
    const followUps = followUpLines(task.followUps, codec)
    const bytes = Buffer.byteLength(data) + Buffer.byteLength(followUps)
    if (bytes <= sizeLimit) return { data, followUps, bytes }
    throw new BullpenError(
      'payload_too_large',
      `the task would take ${bytes} bytes in Redis; the limit is ${sizeLimit} bytes`,
    )
  }

  /** Returns what the script has to know about the task. Call this function directly before the task is sent to Redis. */
  function admitted(task: NewTask): Admitted {
    const start = starts?.expect(task)
    return {
      limits: limitsOfTask(task),
      expectedStartAt: start?.at,
      onNotStored: start?.withdraw,
      noRoom: task.idempotency === undefined ? undefined : records?.refusal(task.queue),
    }
  }

  const enqueue: Broker['enqueue'] = async (task) => {
    const { addTask } = queues.of(task.queue)
    const stored = storedAs(task)
    try {
      const admitting = admit(task.queue, stored.bytes, [task])
      if (admitting !== undefined) await withRedisErrors(admitting)
    } catch (error) {
      const recall = (noRoom: BullpenError): Promise<Enqueued> => addTask(task, stored, { ...NOTHING_ADMITTED, noRoom })
      return rememberedOr(error, [task], recall)
    }
    const about = admitted(task)
    const adding = addTask(task, stored, about)
    if (task.idempotency !== undefined && records !== undefined) settleRecord(records.expect(task), adding)
    if (about.noRoom !== undefined) noteUnremembered(task.queue, adding)
    const enqueued = await withCommandErrors(adding)
    acknowledged.note(enqueued, task)
    return enqueued
  }

  return {
    enqueue,
    limitsOf: (queue, defined) => limitsOf(queue, defined) ?? {},

    async enqueueBulk(tasks) {
      // The first task loads what all tasks need. If all were sent at once, each would read the queue's settings, and each would
      // send the script's whole text if Redis has lost it.
      const first = await Promise.allSettled(tasks.slice(0, 1).map(enqueue))
      return [...first, ...(await Promise.allSettled(tasks.slice(1).map(enqueue)))]
    },

    async enqueueAll(tasks) {
      const queue = queueOfAll(tasks)
      if (queue === undefined) return []
      const { addAllTasks } = queues.of(queue)
      const all = mapTasks(tasks, (task) => ({ task, stored: storedAs(task) }))
      const allBytes = all.reduce((sum, { stored }) => sum + stored.bytes, 0)
      try {
        await withRedisErrors(Promise.resolve(admit(queue, allBytes, tasks)))
      } catch (error) {
        return rememberedOr(error, tasks, (noRoom) =>
          addAllTasks(all.map(({ task, stored }) => ({ task, stored, admitted: { ...NOTHING_ADMITTED, noRoom } }))),
        )
      }
      const jobs = all.map(({ task, stored }) => ({ task, stored, admitted: admitted(task) }))
      const adding = addAllTasks(jobs)
      countRecords(tasks, adding)
      if (jobs.some((job) => job.admitted.noRoom !== undefined)) noteUnremembered(queue, adding)
      const enqueued = await withCommandErrors(adding)
      for (const [i, task] of tasks.entries()) if (enqueued[i] !== undefined) acknowledged.note(enqueued[i], task)
      return enqueued
    },

    async admitMembers(tasks) {
      const stored = mapTasks(tasks, (task) => ({ task, ...storedAs(task) }))
      for (const [queue, ofQueue] of Map.groupBy(stored, ({ task }) => task.queue)) {
        const { keys } = queues.of(queue)
        const bytes = ofQueue.reduce((sum, each) => sum + taskBytes(each.bytes), 0)
        const members = ofQueue.map(({ task }) => task)
        try {
          await withRedisErrors(Promise.resolve(admit(queue, bytes, members)))
        } catch (error) {
          for (const { task } of ofQueue) noteRefused(task.queue, error)
          throw error
        }
        const [first] = ofQueue
        const limits = first && limitsOfTask(first.task)
        if (limits !== undefined)
          await withRedisErrors(assertRoom(redis, keys, { queue, limits, bytes, tasks: members }))
      }
    },
  }
}

/** Reports whether an add has stored, or may have stored, a record. */
function settleRecord(settle: (isStored: boolean) => void, adding: Promise<Enqueued | undefined>): void {
  adding.then(
    (enqueued) => settle(enqueued?.replayed === undefined),
    (error: unknown) => settle(mayHaveRun(error)),
  )
}
