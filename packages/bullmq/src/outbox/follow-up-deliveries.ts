// Delivers follow-up tasks: adds each of them to its target queue.
import type { TaskId } from '@bullpen/contract'
import { forwardedTask, releaseDigest } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { Deliveries } from './deliveries.ts'
import type { TaskEntry } from './outbox-entry.ts'
import type { TargetQueues } from './target-queues.ts'

export interface FollowUpDeliveryOptions {
  readonly targets: TargetQueues
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  readonly onForwarded: (forwarded: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /** Called if a task could not be added. The entry stays in the outbox. */
  readonly onRefused: (refused: { readonly queue: string; readonly error: unknown }) => void
}

/** The part of the digest that the id does not contain, as the record that ../store/lua/includes/add/forwarded.lua describes. */
const NUMBER_AT = 10
const BUCKET_AT = 18
const MAX_DIGITS = 5

/**
 * Returns the delivery of follow-up tasks. The tasks of one call are added independently of each other, each in a script of its own,
 * because their targets may be on different shards, and because one unreachable shard must not hold up the others.
 */
export function followUpDeliveries(options: FollowUpDeliveryOptions): Deliveries['task'] {
  const { targets, now, onForwarded, onRefused } = options

  async function add(entry: TaskEntry): Promise<void> {
    const digest = releaseDigest(entry, sha256)
    const { task, data, lines } = forwardedTask(entry, digest, now())
    await targets.of(task.queue)(task, { data, followUps: lines, forwarded: recordOf(digest) })
    onForwarded({ queue: task.queue, id: task.id, task: task.task })
  }

  return async (claimed, onDelivered) => {
    const adding = claimed.map(async ({ id, entry }) => {
      try {
        await add(entry)
        onDelivered([id])
      } catch (error) {
        onRefused({ queue: entry.template.queue, error })
      }
    })
    await Promise.all(adding)
  }
}

/** Returns the record of an entry, which is a number of 64 bits and the digits whose beginning selects its set. */
export function recordOf(digest: Uint8Array): string {
  const bytes = Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength)
  const bucket = bytes.subarray(BUCKET_AT).toString('hex').slice(0, MAX_DIGITS)
  return `${bytes.readBigInt64BE(NUMBER_AT)} ${bucket}`
}
