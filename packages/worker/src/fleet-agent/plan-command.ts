// What a command means for this process: decided here, and carried out elsewhere.
import { type DrainMode, milliseconds, type Order, type StopWay } from '@bullpen/contract'

export type Deed =
  /** It holds for the whole fleet, and is seen to by the queue's switches. */
  | { readonly do: 'nothing'; readonly detail: string }
  | { readonly do: 'pause' | 'resume'; readonly queues: readonly string[] }
  | {
      readonly do: 'drain'
      readonly queues: readonly string[]
      readonly mode: DrainMode
      readonly timeoutMs: number | undefined
    }
  /** The process ends, as a signal would end it. */
  | { readonly do: 'end'; readonly mode: DrainMode; readonly timeoutMs: number | undefined }
  | { readonly do: 'stop'; readonly queue: string; readonly worker: number; readonly how: StopWay }
  | { readonly do: 'resize'; readonly queue: string; readonly concurrency: number }
  | { readonly do: 'refuse'; readonly why: string }

export interface Self {
  readonly process: string
  readonly queues: readonly string[]
  /** Whether the process drains. */
  readonly ending: boolean
}

export function deedOf(order: Order, { process, queues, ending }: Self): Deed {
  if (order.action === 'limit') return { do: 'nothing', detail: "it is the queue's own" }
  if (order.process !== undefined && order.process !== process) {
    return { do: 'refuse', why: `this is the process ${process}` }
  }
  if (order.queue !== undefined && !queues.includes(order.queue)) {
    return { do: 'refuse', why: `this process works ${queues.join(', ')}, and no queue '${order.queue}'` }
  }
  // What is said to all is for those that stay.
  if (ending && order.process === undefined) return { do: 'nothing', detail: 'the process ends' }
  const meant = order.queue === undefined ? queues : [order.queue]
  switch (order.action) {
    case 'pause':
      if (order.process === undefined) return { do: 'nothing', detail: 'the queue is paused for all' }
      return { do: 'pause', queues: meant }
    case 'resume':
      return { do: 'resume', queues: meant }
    case 'drain': {
      if (order.process === undefined) return { do: 'nothing', detail: 'the queue drains' }
      const { mode, timeout } = order
      const how = { mode, timeoutMs: timeout === undefined ? undefined : milliseconds(timeout) }
      return order.queue === undefined ? { do: 'end', ...how } : { do: 'drain', queues: meant, ...how }
    }
    case 'stop':
      return { do: 'stop', queue: order.queue, worker: order.worker, how: order.how }
    case 'resize':
      return { do: 'resize', queue: order.queue, concurrency: order.concurrency }
  }
}
