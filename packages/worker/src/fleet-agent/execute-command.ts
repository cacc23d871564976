// Executes the plan of a command on this worker and its pools.
import { BullpenError } from '@bullpen/contract'
import type { Pool } from '@bullpen/engine/internal'
import type { DrainRequest, PoolSupervisor } from '../pools/pool-supervisor.ts'
import type { CommandPlan } from './plan-command.ts'

/** What commands act on. */
export interface SteeredWorker {
  readonly pools: PoolSupervisor
  /** Begins to drain the whole worker. */
  drain(request: DrainRequest): void
}

/**
 * `command`: its id. `isHeld`: whether the settings of a queue keep its pools from working. Returns what was done, for people.
 *
 * @throws BullpenError why the command can't be executed.
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
        // A drained pool takes no tasks anyway; resuming it ends both.
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

/** Acts on every queue that it can; throws only when it can act on none. `act` returns what to call the queue in the answer. */
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

/** Idempotent: a slot that is stopping already counts as stopped. */
function stopSlot(pool: Pool, slot: number, how: 'wait' | 'hard'): string {
  const state = pool.slots().find((one) => one.slot === slot)?.state
  const isStopping = state === 'TERMINATED' || (state === 'TERMINATING_STOP_SIGNAL' && how === 'wait')
  if (isStopping) return `slot ${slot} is stopping already`
  pool.stopSlot(slot, how)
  return `slot ${slot} is stopping`
}
