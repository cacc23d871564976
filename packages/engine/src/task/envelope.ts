// Creates the envelope of a task, which every broker stores and every worker decodes.
import { ENVELOPE_VERSION, type Envelope } from '@bullpen/contract/internal'
import { keepsApiKey } from '../admission/api-key-limits.ts'
import type { InputEdit } from '../ports/broker/dead-tasks.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { inputJson } from './payload/input-json.ts'
import { encodePayload } from './payload/payloads.ts'

/** The fields of a task that its envelope contains. */
type EnvelopeSource = Omit<NewTask, 'id' | 'enqueuedAt' | 'expiresAt'>

/** Returns the envelope to store for a new task. Without a codec, the input is stored as it is. */
export function storedEnvelope(task: EnvelopeSource, codec?: PayloadCodec): Envelope {
  const input = codec === undefined ? task.input : encodePayload(task.input, codec, inputJson(task.input))
  return {
    v: ENVELOPE_VERSION,
    ...(task.group !== undefined && { group: task.group }),
    ...(task.followUpOf !== undefined && { followUpOf: task.followUpOf }),
    ...(task.retryOf !== undefined && { retryOf: task.retryOf }),
    ...(task.followUps !== undefined && { followed: true as const }),
    version: task.version,
    // The tags come before the input; see envelopeSchema.
    ...(task.tags !== undefined && task.tags.length > 0 && { tags: [...task.tags] }),
    input,
    ...(codec !== undefined && input !== undefined && { encoded: true as const }),
    ...(task.events !== undefined && { events: task.events }),
    ...(task.meta !== undefined && { meta: task.meta }),
    ...(task.correlationId !== undefined && { correlationId: task.correlationId }),
    ...(task.traceContext !== undefined && { traceContext: task.traceContext }),
    ...(task.depth !== undefined && { depth: task.depth }),
    ...(task.concurrencyKey !== undefined && { concurrencyKey: task.concurrencyKey }),
    ...(keepsApiKey(task) && { apiKeyName: task.apiKeyName }),
    ...(task.timeoutMs !== undefined && { timeoutMs: task.timeoutMs }),
    ...(task.heartbeatMs !== undefined && { heartbeatMs: task.heartbeatMs }),
    ...(task.queueMs !== undefined && { queueMs: task.queueMs }),
    ...(task.totalMs !== undefined && { totalMs: task.totalMs }),
    ...(task.backoff !== undefined && { backoff: task.backoff }),
  }
}

/** Returns the envelope to store for a new task as JSON. @throws BullpenError `invalid_input` if JSON cannot represent the input. */
export function envelopeText(task: EnvelopeSource, codec?: PayloadCodec): string {
  return inputJson(storedEnvelope(task, codec))
}

/** Returns the envelope of a task that gets a new input. The codec need not be the one that has encoded the previous input. */
export function editedEnvelope(envelope: Envelope, { input, version }: InputEdit, codec?: PayloadCodec): Envelope {
  const { encoded: _, keptInput: _kept, ...kept } = envelope
  const stored = codec === undefined ? input : encodePayload(input, codec)
  const isEncoded = codec !== undefined && stored !== undefined
  return { ...kept, version, input: stored, ...(isEncoded && { encoded: true as const }) }
}

/** Returns the envelope of a task that is retried at this time, in ms since 1970. The total timeout starts again. */
export function retriedEnvelope({ v, ...envelope }: Envelope, at: number): Envelope {
  return { v, ...envelope, retriedAt: at }
}
