// Creates the envelope of a task, which every broker stores and every worker decodes.
import { ENVELOPE_VERSION, type Envelope } from '@bullpen/contract/internal'
import { keepsApiKey } from '../admission/api-key-limits.ts'
import type { InputEdit } from '../ports/dead-tasks.ts'
import type { NewTask } from '../ports/new-task.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { encodePayload } from './payloads.ts'

/** Returns the envelope to store for a new task. Without a codec, the input is stored as it is. */
export function storedEnvelope(task: NewTask, codec?: PayloadCodec): Envelope {
  const input = codec === undefined ? task.input : encodePayload(task.input, codec)
  return {
    v: ENVELOPE_VERSION,
    ...(task.retryOf !== undefined && { retryOf: task.retryOf }),
    version: task.version,
    // The tags come before the input; see envelopeSchema.
    ...(task.tags !== undefined && task.tags.length > 0 && { tags: [...task.tags] }),
    input,
    ...(codec !== undefined && input !== undefined && { encoded: true as const }),
    ...(task.meta !== undefined && { meta: task.meta }),
    ...(task.correlationId !== undefined && { correlationId: task.correlationId }),
    ...(task.concurrencyKey !== undefined && { concurrencyKey: task.concurrencyKey }),
    ...(keepsApiKey(task) && { apiKeyName: task.apiKeyName }),
    ...(task.timeoutMs !== undefined && { timeoutMs: task.timeoutMs }),
    ...(task.heartbeatMs !== undefined && { heartbeatMs: task.heartbeatMs }),
    ...(task.queueMs !== undefined && { queueMs: task.queueMs }),
    ...(task.totalMs !== undefined && { totalMs: task.totalMs }),
    ...(task.backoff !== undefined && { backoff: task.backoff }),
  }
}

/** Returns the envelope of a task that gets a new input. The codec need not be the one that has encoded the previous input. */
export function editedEnvelope(envelope: Envelope, { input, version }: InputEdit, codec?: PayloadCodec): Envelope {
  const { encoded: _, ...kept } = envelope
  const stored = codec === undefined ? input : encodePayload(input, codec)
  const isEncoded = codec !== undefined && stored !== undefined
  return { ...kept, version, input: stored, ...(isEncoded && { encoded: true as const }) }
}

/** Returns the envelope of a task that is retried at this time, in ms since 1970. The total timeout starts again. */
export function retriedEnvelope({ v, ...envelope }: Envelope, at: number): Envelope {
  return { v, ...envelope, retriedAt: at }
}
