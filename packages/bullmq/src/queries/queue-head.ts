// Reads the head of a queue: since when the task that starts next has been ready, and whether the queue is paused.
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-steps.ts'
import { type HeadFields, readHead } from '../scripts/queue/read-head.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { lastRetryAt } from './task-state.ts'

const delaySchema = z.object({ delay: z.number().default(0) })

export interface QueueHead {
  /**
   * Since when the waiting task that starts next has been ready, in ms since 1970, by Redis's clock. A task that has been started
   * before counts from its last start, and a dead task that was retried from its retry. Undefined if no task is waiting.
   */
  readonly readyAt: number | undefined
  /** Whether a command has paused the queue. */
  readonly isPaused: boolean
}

/** Takes constant time and one round trip. */
export async function readQueueHead(redis: Commander, keys: QueueKeys): Promise<QueueHead> {
  const head = await runScript(redis, readHead, keys, keys)
  return { readyAt: readyAt(head), isPaused: head.paused !== undefined && head.paused !== CLOSED_BY_OUTBOX }
}

function readyAt({ timestamp, options, lastStart, retries }: HeadFields): number | undefined {
  if (timestamp === undefined) return undefined
  // BullMQ keeps the delay in the job's options when the task has become ready.
  const startable = lastStart === undefined ? Number(timestamp) + delayIn(options) : Number(lastStart)
  return Math.max(startable, lastRetryAt(retries) ?? 0)
}

/** The options of plain BullMQ may contain a second delay, that of the backoff. */
function delayIn(options: string | undefined): number {
  const parsed = delaySchema.safeParse(parseJson(options))
  return parsed.success ? parsed.data.delay : 0
}
