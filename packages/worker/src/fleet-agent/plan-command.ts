// What a command means for this worker: decided here, and carried out elsewhere.
import { type DrainMode, milliseconds, type StopMode } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'

export type CommandPlan =
  /** It holds for the whole fleet, and is seen to by the queue's switches. */
  | { readonly do: 'nothing'; readonly detail: string }
  | { readonly do: 'pause' | 'resume'; readonly queues: readonly string[] }
  | {
      readonly do: 'drain'
      readonly queues: readonly string[]
      readonly mode: DrainMode
      readonly timeoutMs: number | undefined
    }
  /** The worker ends, as a signal would end it. */
  | { readonly do: 'end'; readonly mode: DrainMode; readonly timeoutMs: number | undefined }
  | { readonly do: 'stop'; readonly queue: string; readonly slot: number; readonly how: StopMode }
  | { readonly do: 'resize'; readonly queue: string; readonly concurrency: number }
  | { readonly do: 'refuse'; readonly why: string }

export interface Self {
  readonly worker: string
  readonly queues: readonly string[]
  /** Whether the worker drains. */
  readonly ending: boolean
}

export function planCommand(order: CommandSpec, { worker, queues, ending }: Self): CommandPlan {
  if (order.action === 'limit') return { do: 'nothing', detail: "it is the queue's own" }
  if (order.worker !== undefined && order.worker !== worker) {
    return { do: 'refuse', why: `this is the worker ${worker}` }
  }
  if (order.queue !== undefined && !queues.includes(order.queue)) {
    return { do: 'refuse', why: `this worker works ${queues.join(', ')}, and no queue '${order.queue}'` }
  }
  // What is said to all is for those that stay.
  if (ending && order.worker === undefined) return { do: 'nothing', detail: 'the worker ends' }
  const meant = order.queue === undefined ? queues : [order.queue]
  switch (order.action) {
    case 'pause':
      if (order.worker === undefined) return { do: 'nothing', detail: 'the queue is paused for all' }
      return { do: 'pause', queues: meant }
    case 'resume':
      return { do: 'resume', queues: meant }
    case 'drain': {
      if (order.worker === undefined) return { do: 'nothing', detail: 'the queue drains' }
      const { mode, timeout } = order
      const how = { mode, timeoutMs: timeout === undefined ? undefined : milliseconds(timeout) }
      return order.queue === undefined ? { do: 'end', ...how } : { do: 'drain', queues: meant, ...how }
    }
    case 'stop':
      return { do: 'stop', queue: order.queue, slot: order.slot, how: order.how }
    case 'resize':
      return { do: 'resize', queue: order.queue, concurrency: order.concurrency }
  }
}
