// The ports that store the results of a task's finished steps, as JSON.

export interface StepLookup {
  /** The idempotency key of the step: the same in every attempt of the task. */
  readonly key: string
  /** The stored result as JSON; undefined when no attempt has finished this step. */
  readonly result: string | undefined
}

/** What `ctx.once` needs, from the attempt itself or, in an isolate, from the attempt outside. */
export interface StepStore {
  findStep(step: string): Promise<StepLookup>
  /** Resolves with the stored result: another attempt's, if that was stored first. */
  storeStep(step: string, result: string): Promise<string>
}

/** The results of one task, as its broker stores them. */
export interface StoredSteps {
  /** By name. One round trip. */
  read(): Promise<ReadonlyMap<string, string>>
  /**
   * Stores the result unless one is stored already, and resolves with the stored one; with undefined, and nothing written,
   * when this attempt no longer holds the lock. Atomic; one round trip.
   */
  keep(step: string, result: string): Promise<string | undefined>
}
