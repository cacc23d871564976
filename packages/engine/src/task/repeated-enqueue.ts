// Defines how long after an enqueue a broker recognises a repeat of the call, even if the task has ended or was deleted.

/**
 * A task that was deleted is remembered until this time has passed since its enqueue, in ms. A client over Redis repeats a call for
 * 10 s by default, and a broker waits for less than a second for the reply to each try.
 */
export const REPEATS_WITHIN_MS = 20_000
