// Reads the head of a queue: since when the task that starts next has been ready, and whether the queue is paused.
import type { QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-steps.ts'
import { type HeadFields, readHead } from '../scripts/queue/read-head.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface QueueHead {
  /**
   * Since when the waiting task that starts next has been ready, in ms since 1970, by Redis's clock. A task that has been started
   * before counts from its last start. Undefined if no task is waiting.
   */
  readonly readyAt: number | undefined
  /** Whether a command has paused the queue. */
  readonly isPaused: boolean
}

/** Takes constant time and one round trip. */
export async function readQueueHead(redis: Commander, keys: QueueKeys): Promise<QueueHead> {
  const { meta, wait, prioritized } = keys
  const head = await runScript(redis, readHead, { meta, wait, prioritized }, { prefix: keys.job('') })
  return { readyAt: readyAt(head), isPaused: head.paused !== undefined && head.paused !== CLOSED_BY_OUTBOX }
}

function readyAt({ timestamp, options, lastStart }: HeadFields): number | undefined {
  if (timestamp === undefined) return undefined
  if (lastStart !== undefined) return Number(lastStart)
  // BullMQ keeps the delay in the job's options when the task has become ready.
  return Number(timestamp) + Number(/"delay":(\d+)/.exec(options ?? '')?.[1] ?? 0)
}
