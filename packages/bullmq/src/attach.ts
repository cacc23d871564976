// Gives the BullMQ objects that a team keeps itself the scripts that Bullpen's own have.
import { composeBackend, isRedisBackend } from './internals/backend.ts'

/** A Worker, a Queue or a FlowProducer of BullMQ. */
export interface Attachable {
  getBackend(): object
}

/**
 * Makes the scripts of a Worker, Queue or FlowProducer store what Bullpen stores with each move of a task: its status, the record of
 * an attempt that was requeued, snoozed or lost, and the totals. The events of a Worker's attempts are emitted when Redis has
 * answered these scripts. A Worker whose processor is {@link processor} must be attached:
 *
 * ```ts
 * const worker = attach(new Worker('email', processor(catalogue, handlers), options))
 * ```
 *
 * Call it in the same turn of the event loop as the constructor, or, if the Worker has `autorun: false`, before `run()`. Idempotent.
 * Sends nothing. Something on a backend other than Redis is returned unchanged.
 */
export function attach<T extends Attachable>(attachable: T): T {
  const backend = attachable.getBackend()
  if (isRedisBackend(backend)) composeBackend(backend, { now: Date.now })
  return attachable
}
