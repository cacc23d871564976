// Decides what a command means for this worker. The decision is pure; execute-command.ts acts on the plan.
import { type DrainMode, milliseconds, type StopMode } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'

export type CommandPlan =
  /**
   * There is nothing to do, because the command changed queue settings, which every worker follows, or because it came too late.
   */
  | { readonly do: 'nothing'; readonly detail: string }
  | { readonly do: 'refuse'; readonly why: string }
  | { readonly do: 'pause' | 'resume'; readonly queues: readonly string[] }
  | ({ readonly do: 'drain_pool'; readonly queue: string } & HowToDrain)
  | ({ readonly do: 'drain_worker' } & HowToDrain)
  | { readonly do: 'stop_slot'; readonly queue: string; readonly slot: number; readonly how: StopMode }
  | { readonly do: 'resize'; readonly queue: string; readonly concurrency: number }

interface HowToDrain {
  readonly mode: DrainMode
  readonly timeoutMs: number | undefined
}

/** The facts that the decision depends on. */
export interface CommandTarget {
  readonly worker: string
  readonly queues: readonly string[]
  readonly draining: boolean
}

export function planCommand(spec: CommandSpec, { worker, queues, draining }: CommandTarget): CommandPlan {
  if (spec.action === 'limit') return { do: 'nothing', detail: 'the limit is enforced by the queue' }
  const isForAll = spec.worker === undefined
  if (!isForAll && spec.worker !== worker) return { do: 'refuse', why: `this is worker ${worker}` }
  if (spec.queue !== undefined && !queues.includes(spec.queue)) {
    const why = `this worker has no pool for queue '${spec.queue}'; its queues: ${queues.join(', ')}`
    return { do: 'refuse', why }
  }
  // Commands for the whole fleet are meant for the workers that stay.
  if (draining && isForAll) return { do: 'nothing', detail: 'the worker is draining' }
  const targets = spec.queue === undefined ? queues : [spec.queue]
  switch (spec.action) {
    case 'pause':
      return isForAll ? { do: 'nothing', detail: 'the queue is paused' } : { do: 'pause', queues: targets }
    case 'resume':
      return { do: 'resume', queues: targets }
    case 'drain': {
      if (isForAll) return { do: 'nothing', detail: 'the queue is draining' }
      const { queue, mode, timeout } = spec
      const how = { mode, timeoutMs: timeout === undefined ? undefined : milliseconds(timeout) }
      return queue === undefined ? { do: 'drain_worker', ...how } : { do: 'drain_pool', queue, ...how }
    }
    case 'stop':
      return { do: 'stop_slot', queue: spec.queue, slot: spec.slot, how: spec.how }
    case 'resize':
      return { do: 'resize', queue: spec.queue, concurrency: spec.concurrency }
  }
}
