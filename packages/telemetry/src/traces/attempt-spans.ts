// Describes the spans of attempts.
import type { TaskEvent } from '@bullpen/contract'
import type { TracedAttempt } from '@bullpen/engine'
import type { Span } from '@opentelemetry/api'
import { failSpan, messagingAttributes } from './messaging.ts'

export type AttemptEnd = TaskEvent & { readonly event: 'attempt.ended' | 'attempt.commit_refused' }

export function attemptAttributes(attempt: TracedAttempt) {
  const { followUpOf } = attempt
  return {
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    ...messagingAttributes(attempt),
    'bullpen.attempt': attempt.attempt,
    'bullpen.fencing_token': attempt.fencingToken,
    ...(followUpOf !== undefined && { 'bullpen.follow_up_of': followUpOf }),
  }
}

/** An attempt that was stopped, requeued or snoozed has not failed. */
export function describeAttemptEnd(span: Span, end: AttemptEnd): void {
  span.setAttribute('bullpen.state', end.state)
  if (end.verdict !== undefined) span.setAttribute('bullpen.verdict', end.verdict)
  if (end.reason !== undefined) span.setAttribute('bullpen.reason', end.reason)
  if (end.event === 'attempt.commit_refused') {
    span.setAttribute('bullpen.refusal', end.refusal)
    failSpan(span, end.refusal, 'the result was not stored')
  } else if (end.verdict === 'retrying' || end.verdict === 'dead') {
    const { error, code, reason } = end
    if (error instanceof Error) span.recordException(error)
    failSpan(span, code ?? reason ?? end.verdict, error instanceof Error ? error.message : undefined)
  }
}
