// Creates the envelope of a new task, which every broker stores and every worker decodes.
import { ENVELOPE_VERSION, type Envelope } from '@bullpen/contract/internal'
import type { NewTask } from '../ports/broker.ts'

export function storedEnvelope(task: NewTask): Envelope {
  return {
    v: ENVELOPE_VERSION,
    version: task.version,
    // The tags come before the input; see envelopeSchema.
    ...(task.tags !== undefined && task.tags.length > 0 && { tags: [...task.tags] }),
    input: task.input,
    ...(task.meta !== undefined && { meta: task.meta }),
    ...(task.correlationId !== undefined && { correlationId: task.correlationId }),
    ...(task.timeoutMs !== undefined && { timeoutMs: task.timeoutMs }),
    ...(task.heartbeatMs !== undefined && { heartbeatMs: task.heartbeatMs }),
    ...(task.queueMs !== undefined && { queueMs: task.queueMs }),
    ...(task.totalMs !== undefined && { totalMs: task.totalMs }),
  }
}
