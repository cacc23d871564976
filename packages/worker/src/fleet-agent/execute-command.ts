// Executes the plan of a command on this worker and its pools.
import { BullpenError } from '@bullpen/contract'
import type { Pool } from '@bullpen/engine/internal'
import type { DrainRequest, PoolSupervisor } from '../pools/pool-supervisor.ts'
import type { CommandPlan } from './plan-command.ts'

/** The worker that commands act on. */
export interface SteeredWorker {
  readonly pools: PoolSupervisor
  /** Starts to drain the whole worker. */
  drain(request: DrainRequest): void
}

/**
 * `command` is the command's id. `isHeld` returns whether the settings of a queue prevent its pool from working. Returns a
 * human-readable description of what was done.
 *
 * @throws BullpenError with the reason if the command can't be executed.
 */
export function executeCommand(
  plan: CommandPlan,
  command: string,
  { pools, drain }: SteeredWorker,
  isHeld: (queue: string) => boolean,
): string {
  switch (plan.do) {
    case 'nothing':
      return plan.detail
    case 'refuse':
      throw new BullpenError('wrong_state', plan.why)
    case 'pause':
      return forEach(plan.queues, 'paused', (queue) => {
        // A drained pool takes no tasks anyway, and resuming it would end both the pause and the drain.
        if (pools.causeOf(queue) !== undefined) return `${queue} (drained)`
        poolOf(pools, queue).pause()
        return queue
      })
    case 'resume':
      return forEach(plan.queues, 'resumed', (queue) => {
        if (pools.causeOf(queue) !== undefined && isHeld(queue)) {
          throw new BullpenError('wrong_state', `queue '${queue}' is draining in the whole fleet`)
        }
        return pools.resume(queue) === 'later' ? `${queue} (when its running tasks have ended)` : queue
      })
    case 'drain_pool':
      pools.drain(plan.queue, plan, { by: 'command', command })
      return `draining: ${plan.queue}`
    case 'drain_worker':
      drain({ mode: plan.mode, timeoutMs: plan.timeoutMs })
      return 'the worker is draining'
    case 'stop_slot':
      return stopSlot(poolOf(pools, plan.queue), plan.slot, plan.how)
    case 'resize':
      pools.resize(plan.queue, plan.concurrency)
      return `concurrency is ${plan.concurrency}`
  }
}

function poolOf(pools: PoolSupervisor, queue: string): Pool {
  const pool = pools.pool(queue)
  if (pool === undefined) throw new BullpenError('queue_not_found', `this worker has no pool for queue '${queue}'`)
  return pool
}

/**
 * Acts on each queue for which that is possible, and throws only if it is possible for none. `act` returns the text that stands
 * for the queue in the answer.
 */
function forEach(queues: readonly string[], done: string, act: (queue: string) => string): string {
  const refusals: BullpenError[] = []
  const changed = queues.flatMap((queue) => {
    try {
      return [act(queue)]
    } catch (error) {
      if (!(error instanceof BullpenError)) throw error
      refusals.push(error)
      return []
    }
  })
  const [refusal] = refusals
  if (refusal !== undefined && changed.length === 0) throw refusal
  return [`${done}: ${changed.join(', ')}`, ...refusals.map(({ message }) => message)].join('; ')
}

/** Stops a slot. Idempotent: a slot that is already stopping counts as stopped. */
function stopSlot(pool: Pool, slot: number, how: 'wait' | 'hard'): string {
  const state = pool.slots().find((one) => one.slot === slot)?.state
  const isStopping = state === 'TERMINATED' || (state === 'TERMINATING_STOP_SIGNAL' && how === 'wait')
  if (isStopping) return `slot ${slot} is already stopping`
  pool.stopSlot(slot, how)
  return `slot ${slot} is stopping`
}
