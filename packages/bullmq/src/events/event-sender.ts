// Sends batches of events to Redis.
import { randomBytes } from 'node:crypto'
import { MAX_LOG_EVENTS } from '@bullpen/contract/internal'
import type { RedisClient } from 'bullmq'
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScriptInOrder, runScriptOnClient } from '../scripts/script.ts'
import { writeEventsScript } from '../store/scripts.ts'
import type { EventBufferOptions } from './event-buffer.ts'

/** Returns a function that sends batches over Bullpen's own connection. A batch takes one round trip. */
export function eventSender(
  redis: Commander,
  keys: Pick<QueueKeys, 'base' | 'eventBatch'>,
): EventBufferOptions['send'] {
  // A commit may follow at once, after which the attempt no longer has its lock.
  return numbered(keys, (...call) => runScriptInOrder(redis, writeEventsScript, ...call))
}

/** Works like {@link eventSender}, over the connection of a team's own Worker. `client` is undefined if the backend is not Redis. */
export function eventSenderOnClient(
  client: () => Promise<RedisClient> | undefined,
  keys: Pick<QueueKeys, 'base' | 'eventBatch'>,
): EventBufferOptions['send'] {
  const send = numbered(keys, async (...call) => {
    const connected = await client()
    if (connected !== undefined) await runScriptOnClient(connected, writeEventsScript, ...call)
  })
  // Redis learns the script from the first call. That call would be too late for an attempt that ends at the same time.
  send([]).catch(() => {})
  return send
}

type Send = (
  keys: { readonly eventBatch: string },
  args: { readonly base: string; readonly number: number; readonly tasks: string; readonly maxLogs: number },
) => Promise<void>

/** Numbers the batches, so that Redis recognises one that is sent again. */
function numbered(
  { base, eventBatch }: Pick<QueueKeys, 'base' | 'eventBatch'>,
  send: Send,
): EventBufferOptions['send'] {
  const batchKey = eventBatch(randomBytes(9).toString('base64url'))
  let number = 0
  return (batch) => {
    number++
    const tasks = JSON.stringify(batch.map(({ id, token, events }) => [id, token, events]))
    return send({ eventBatch: batchKey }, { base, number, tasks, maxLogs: MAX_LOG_EVENTS })
  }
}
