// Decides how many bytes a task takes in its queue, and what happens to a task for which the queue never has room.
import { BullpenError } from '@bullpen/contract'
import { formatBytes } from '@bullpen/contract/internal'

/**
 * The bytes that Redis stores for a task in addition to its string: the task's other fields and its place in the queue. With
 * Redis's default settings, a waiting task takes about 450 bytes more than its string.
 */
export const TASK_OVERHEAD_BYTES = 512

/** Returns how many bytes a task counts for until it ends. `dataBytes` is the size of its stored string. */
export function taskBytes(dataBytes: number): number {
  return dataBytes + TASK_OVERHEAD_BYTES
}

/**
 * Returns the error for a task that alone, or together with the tasks before it in an atomic call, exceeds its queue's maximum
 * number of bytes. The code is not `queue_full`, because the tasks would not fit into an empty queue either.
 */
export function tooLargeForQueue(queue: string, bytes: number, maxBytes: number): BullpenError {
  return new BullpenError(
    'payload_too_large',
    `the call needs ${bytes} bytes, but all tasks of queue '${queue}' together may take ${formatBytes(maxBytes)} (maxBytes); make the input smaller, or raise the limit`,
  )
}
