// Enqueues several tasks of a client over Redis. Each has its own result, or all are stored or none.
import { BullpenError, type Enqueued, type EnqueueRequest, QueueFullError } from '@bullpen/contract'
import { type BulkEnqueued, errorAt, ProblemError, type Try } from '@bullpen/contract/internal'
import type { Broker, NewTask } from '@bullpen/engine'
import { type BlockedCallers, checkAtomic, errorOfAll } from '@bullpen/engine/internal'
import type { GivenKey, PlannedTask, PlanTask } from './planned-task.ts'
import { problemOf } from './redis-problem.ts'
import type { StoreTask } from './store-task.ts'

export interface BulkDependencies {
  readonly broker: Pick<Broker, 'enqueueBulk' | 'enqueueAll'>
  readonly plan: PlanTask
  readonly store: StoreTask
  readonly blocked: Pick<BlockedCallers, 'mustWait'>
}

export interface BulkOptions {
  readonly idempotency: GivenKey | undefined
  readonly atomic: boolean
}

/** A prepared bulk call. */
export interface Bulk {
  /** Enqueues the tasks once. If the call is atomic, rejects with a BullpenError unless all are stored. */
  readonly send: Try<readonly BulkEnqueued[]>
  /** Returns the id of the first task if it may be stored, which shows whether an atomic call has stored its tasks. */
  readonly mayBeStored: () => string | undefined
}

export type PrepareBulk = (requests: readonly EnqueueRequest[], options: BulkOptions) => Bulk

/** A task that can be sent, or what is wrong with it. */
type Planned = PlannedTask | BullpenError

interface Sent {
  readonly index: number
  readonly planned: PlannedTask
  readonly task: NewTask
}

export function bulkPreparer({ broker, plan, store, blocked }: BulkDependencies): PrepareBulk {
  /** Returns whether the task waits for room and earlier callers are waiting, which it must not overtake. */
  function mustWait(planned: PlannedTask): boolean {
    return typeof planned.whenFull === 'object' && blocked.mustWait(planned)
  }

  /** If the queue is full, the task's policy decides what happens. `outcome` is undefined for a task that has not been sent yet. */
  async function resultOf(
    index: number,
    planned: PlannedTask,
    outcome: PromiseSettledResult<Enqueued> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<BulkEnqueued> {
    const { whenFull } = planned
    try {
      if (outcome?.status === 'fulfilled') return accepted(planned, outcome.value)
      const reason: unknown = outcome?.reason
      const isFull = reason instanceof QueueFullError && whenFull !== 'reject'
      if (outcome !== undefined && !isFull) throw reason
      const stored = whenFull === 'drop' ? undefined : await store(planned, signal)
      return stored === undefined ? { action: 'dropped' } : accepted(planned, stored)
    } catch (error) {
      const isReused = error instanceof BullpenError && error.code === 'idempotency_key_reused'
      return rejected(isReused ? errorAt(error, `/tasks/${index}`) : error, planned)
    }
  }

  /** Calling the returned function again sends only the tasks that are not known to be stored. */
  function eachSender(all: readonly Planned[]): Try<readonly BulkEnqueued[]> {
    const results = new Map<number, BulkEnqueued>()
    return async (signal) => {
      const sent: Sent[] = []
      const settling: Promise<void>[] = []
      const settle = async (index: number, planned: PlannedTask, outcome?: PromiseSettledResult<Enqueued>) => {
        results.set(index, await resultOf(index, planned, outcome, signal))
      }
      for (const [index, planned] of all.entries()) {
        const earlier = results.get(index)
        if (earlier !== undefined && 'id' in earlier) continue
        const task = created(planned, index)
        if (task instanceof BullpenError || planned instanceof BullpenError)
          results.set(index, rejected(task, undefined))
        else if (mustWait(planned)) settling.push(settle(index, planned))
        else sent.push({ index, planned, task })
      }
      const outcomes = await broker.enqueueBulk(sent.map(({ task }) => task))
      for (const [i, { index, planned }] of sent.entries()) {
        const outcome = outcomes[i]
        if (outcome !== undefined) settling.push(settle(index, planned, outcome))
      }
      await Promise.all(settling)
      return all.flatMap((_, index) => results.get(index) ?? [])
    }
  }

  async function sendAll(all: readonly Planned[]): Promise<readonly BulkEnqueued[]> {
    const tasks = all.map(created)
    const invalid = tasks.filter((each) => each instanceof BullpenError)
    if (invalid.length > 0) throw errorOfAll(invalid)
    const valid = tasks.flatMap((each) => (each instanceof BullpenError ? [] : [each]))
    const stored = await broker.enqueueAll(valid).catch((error: unknown) => {
      throw error instanceof BullpenError && error.errors.length > 0 ? errorAt(error, '/tasks') : error
    })
    return all.flatMap((planned, i) => {
      const enqueued = stored[i]
      return planned instanceof BullpenError || enqueued === undefined ? [] : [accepted(planned, enqueued)]
    })
  }

  return (requests, { idempotency, atomic }) => {
    const planAt = (request: EnqueueRequest, index: number): Planned =>
      valueOrError(index, () => {
        if (atomic) checkAtomic(request)
        // A caller's key cannot contain a line break.
        return plan(request, idempotency && { ...idempotency, key: `${idempotency.key}\n${index}` })
      })
    const all = requests.map(planAt)
    const [first] = all
    return {
      send: atomic ? () => sendAll(all) : eachSender(all),
      mayBeStored: () => (first instanceof BullpenError ? undefined : first?.mayBeStored()),
    }
  }
}

function created(planned: Planned, index: number): NewTask | BullpenError {
  return planned instanceof BullpenError ? planned : valueOrError(index, planned.create)
}

/** Returns the value, or the BullpenError that `get` throws, with pointers into the whole call. */
function valueOrError<T>(index: number, get: () => T): T | BullpenError {
  try {
    return get()
  } catch (error) {
    if (!(error instanceof BullpenError)) throw error
    return errorAt(error, `/tasks/${index}`)
  }
}

function accepted(planned: PlannedTask, enqueued: Enqueued): BulkEnqueued {
  const result = planned.resultOf(enqueued)
  return enqueued.replayed === undefined ? result : { ...result, replayed: true }
}

/** `planned` is undefined if the broker has not been called for the task. */
function rejected(error: unknown, planned: PlannedTask | undefined): BulkEnqueued {
  const problem = problemOf(error, planned?.mayBeStored())
  if (problem instanceof ProblemError) return { error: problem }
  // An unexpected error of one task, such as that of a codec, must not hide the results of the others.
  const detail = error instanceof Error ? error.message : String(error)
  return { error: new ProblemError({ code: 'internal_error', outcome: 'unknown', detail, cause: error }) }
}
