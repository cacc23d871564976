// Defines the ports that store the results of a task's finished steps as JSON, and the tasks that a handler registers for the end of
// its task.
import type { FollowUpKind } from '@bullpen/contract/internal'

export interface StepLookup {
  /** The idempotency key of the step, which is the same in every attempt of the task. */
  readonly key: string
  /** The stored result as JSON. Undefined if no attempt has finished this step. */
  readonly result: string | undefined
}

/** The methods that `ctx.once` needs. The attempt provides them. In an isolate, calls are forwarded to the attempt outside. */
export interface StepStore {
  findStep(step: string): Promise<StepLookup>
  /** Resolves with the stored result, which is another attempt's result if that was stored first. */
  storeStep(step: string, result: string): Promise<string>
}

/** The step results of one task, as its broker stores them. */
export interface StoredSteps {
  /** Reads the results by step name. Takes one round trip. */
  read(): Promise<ReadonlyMap<string, string>>
  /**
   * Stores the result unless the step already has one, and resolves with the stored result. If this attempt no longer holds the
   * lock, nothing is written and the promise resolves with undefined. The call is atomic and takes one round trip.
   */
  keep(step: string, result: string): Promise<string | undefined>
  /**
   * Stores a task that is enqueued when this one has ended, in place of an earlier one of the same kind with the same identity.
   * `template` is JSON. The call is atomic and takes one round trip. Unless it resolves with `stored`, nothing was written.
   */
  register(kind: RegisteredKind, identity: string, template: string): Promise<Registration>
}

/** When a registered task is enqueued: as a compensation, or as a follow-up of a failure or of any end. */
export type RegisteredKind = 'compensation' | Exclude<FollowUpKind, 'success'>

/** `full` means that the task has too many compensations or follow-ups, or that they are too large. */
export type Registration = 'stored' | 'lock_lost' | 'full'
