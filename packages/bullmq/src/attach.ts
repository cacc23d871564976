// Gives Bullpen's scripts to BullMQ objects that a team creates itself.
import { composeBackend, isRedisBackend } from './internals/composition/backend.ts'

/** A BullMQ Worker, Queue or FlowProducer. */
export interface Attachable {
  getBackend(): object
}

/**
 * Makes the scripts of a Worker, Queue or FlowProducer also store the data that Bullpen keeps about each move of a task: the
 * task's status, the record of an attempt that was requeued, snoozed or lost, and the queue's totals. A Worker's attempts emit
 * their events once Redis has run these scripts. A Worker whose processor is {@link processor} must be attached:
 *
 * ```ts
 * const worker = attach(new Worker('email', processor(catalogue, handlers), options))
 * ```
 *
 * Call `attach` in the same turn of the event loop as the constructor or, if the Worker has `autorun: false`, before `run()`. The
 * call does not send any commands, and a second call has no effect. Returns its argument, which is unchanged if its backend is
 * not Redis.
 */
export function attach<T extends Attachable>(attachable: T): T {
  const backend = attachable.getBackend()
  if (isRedisBackend(backend)) composeBackend(backend, { now: Date.now })
  return attachable
}
