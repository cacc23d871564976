// Cancels the waiting tasks of a drained queue whose definition has `onShutdown: 'cancel'`.
//
// The process that sends the drain decides by its catalogue, and stores the decision with the command, so that whichever process
// applies the command (fleet/fleet.ts) puts it into the queue's settings. The leader finds it there, even if a process dies in
// between, and stores a cancel rule, once for each drain: the rule's id derives from the command, and the script that stores the rule notes
// the command in the settings. A drain that a resume or another drain has replaced gets no rule. Once the rule is stored, its tasks
// are shown as cancelled, which is final, so that a later resume does not bring them back.
import { createHash } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import { z } from 'zod'
import { parseJson } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { storeRuleOfDrain } from './by-filter.ts'

const drainSchema = z.object({ command: z.string(), since: z.number(), cancelledBy: z.string() })

/**
 * Stores the rule of the queue's drain, if the drain cancels tasks. The call is idempotent, and takes two round trips.
 *
 * @throws BullpenError `too_many_cancels`.
 */
export async function cancelDrained(redis: Commander, keys: QueueKeys, queue: string): Promise<void> {
  const { data: drain } = drainSchema.safeParse(parseJson((await redis.hget(keys.settings, 'drain')) ?? ''))
  if (drain === undefined) return
  const { command, since, cancelledBy: by } = drain
  const id = createTaskId(queue, since, createHash('sha256').update(command).digest())
  await storeRuleOfDrain(redis, keys, { id, queue, before: since, reason: 'queue_shutdown', by }, command)
}
