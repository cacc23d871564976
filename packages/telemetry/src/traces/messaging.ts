// The attributes that all spans have in common, after OpenTelemetry's semantic conventions for messaging
// (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/).
import type { TracedAttempt, TracedEnqueue } from '@bullpen/engine'
import { type Span, SpanStatusCode } from '@opentelemetry/api'

type Common = 'queue' | 'task' | 'id' | 'correlationId' | 'group' | 'run'

export function messagingAttributes(traced: Pick<TracedAttempt | TracedEnqueue, Common>) {
  const { queue, task, id, correlationId, group, run } = traced
  return {
    'messaging.system': 'bullpen',
    ...(queue !== undefined && { 'messaging.destination.name': queue }),
    ...(id !== undefined && { 'messaging.message.id': id }),
    ...(correlationId !== undefined && { 'messaging.message.conversation_id': correlationId }),
    ...(task !== undefined && { 'bullpen.task': task }),
    ...(group !== undefined && { 'bullpen.group': group }),
    ...(run !== undefined && { 'bullpen.run': run }),
  }
}

/** `type` is one of few values, such as an error's code. */
export function failSpan(span: Span, type: string, message: string | undefined): void {
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
}
