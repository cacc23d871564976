// Carries out a deed on the pools of this worker.
import { BullpenError, type DrainMode } from '@bullpen/contract'
import type { DrainLimits, Pool } from '@bullpen/engine/internal'
import type { PoolSupervisor } from '../pools/pool-supervisor.ts'
import type { CommandPlan } from './plan-command.ts'

export interface CommandDependencies {
  readonly keeper: PoolSupervisor
  readonly limitsOf: (mode: DrainMode, timeoutMs: number | undefined) => DrainLimits
  /** Begins to drain the whole worker. */
  readonly endProcess: (mode: DrainMode, timeoutMs: number | undefined) => void
  /** Whether the whole fleet of the queue drains, in a way that lets none of its pools work. */
  readonly fleetDrains: (queue: string) => boolean
}

/** `command`: its id. Returns what was done, for people. @throws BullpenError why it can't be. */
export function executeCommand(
  deed: CommandPlan,
  command: string,
  { keeper, limitsOf, endProcess, fleetDrains }: CommandDependencies,
): string {
  switch (deed.do) {
    case 'nothing':
      return deed.detail
    case 'refuse':
      throw new BullpenError('wrong_state', deed.why)
    case 'pause':
      return each(deed.queues, 'paused', (queue) => {
        // It takes nothing as it is; resuming it ends both.
        if (keeper.causeOf(queue) !== undefined) return `${queue}, which is drained`
        poolOf(keeper, queue).pause()
        return queue
      })
    case 'resume':
      return each(deed.queues, 'resumed', (queue) => {
        if (keeper.causeOf(queue) !== undefined && fleetDrains(queue)) {
          throw new BullpenError('wrong_state', `the whole fleet of queue '${queue}' drains`)
        }
        return keeper.resume(queue) === 'later' ? `${queue}, when what it runs has ended` : queue
      })
    case 'drain':
      return each(deed.queues, 'draining', (queue) => {
        keeper.drain(queue, limitsOf(deed.mode, deed.timeoutMs), { by: 'command', command })
        return queue
      })
    case 'end':
      endProcess(deed.mode, deed.timeoutMs)
      return 'the worker ends'
    case 'stop':
      return stopWorker(poolOf(keeper, deed.queue), deed.slot, deed.how)
    case 'resize':
      keeper.resize(deed.queue, deed.concurrency)
      return `its concurrency is ${deed.concurrency}`
  }
}

function poolOf(keeper: PoolSupervisor, queue: string): Pool {
  const pool = keeper.pool(queue)
  if (pool === undefined) throw new BullpenError('queue_not_found', `this worker has no pool of queue '${queue}'`)
  return pool
}

/** Of a worker with many pools, those that can; it is refused when none can. `act` returns which, for people. */
function each(queues: readonly string[], done: string, act: (queue: string) => string): string {
  const refusals: BullpenError[] = []
  const obeyed = queues.flatMap((queue) => {
    try {
      return [act(queue)]
    } catch (error) {
      if (!(error instanceof BullpenError)) throw error
      refusals.push(error)
      return []
    }
  })
  const [refusal] = refusals
  if (refusal !== undefined && obeyed.length === 0) throw refusal
  return [`${done}: ${obeyed.join(', ')}`, ...refusals.map(({ message }) => message)].join('; ')
}

/** One that ends already has been stopped: what was asked for is so. */
function stopWorker(pool: Pool, slot: number, how: 'wait' | 'hard'): string {
  const state = pool.slots().find((one) => one.slot === slot)?.state
  if (state === 'TERMINATED' || (state === 'TERMINATING_STOP_SIGNAL' && how === 'wait')) return 'it ends already'
  pool.stopSlot(slot, how)
  return 'it ends'
}
