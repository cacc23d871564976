// Describes the spans of calls that enqueue tasks.
import { BullpenError } from '@bullpen/contract'
import type { EnqueueEnd, TracedEnqueue } from '@bullpen/engine'
import type { Span } from '@opentelemetry/api'
import { failSpan, messagingAttributes } from './messaging.ts'

export function enqueueAttributes(enqueue: TracedEnqueue) {
  const { count, retryOf } = enqueue
  return {
    'messaging.operation.name': 'enqueue',
    'messaging.operation.type': 'send',
    ...messagingAttributes(enqueue),
    ...(count !== undefined && { 'messaging.batch.message_count': count }),
    ...(retryOf !== undefined && { 'bullpen.retry_of': retryOf }),
  }
}

export function describeEnqueueEnd(span: Span, end: EnqueueEnd): void {
  if ('error' in end) {
    const { error, failed } = end
    if (failed !== undefined) span.setAttribute('bullpen.failed_count', failed)
    const type = error instanceof BullpenError ? error.code : error instanceof Error ? error.name : '_OTHER'
    failSpan(span, type, error instanceof Error ? error.message : undefined)
    return
  }
  // The store replies with the id of another task if that one has the task's unique key or idempotency key.
  if (end.id !== undefined) span.setAttribute('messaging.message.id', end.id)
  if (end.action !== undefined) span.setAttribute('bullpen.action', end.action)
}
