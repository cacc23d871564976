// The times between which the entries of an outbox were written.

/** What `outbox_span` of store/lua/includes/outbox-span.lua returns. */
export type OutboxSpanReply = [now: number, oldestAt?: number]

/** In ms since 1970 by the clock of the outbox's node. */
export interface OutboxSpan {
  /** When the oldest entry was written. Infinity if the outbox is empty. */
  readonly oldestAt: number
  /** The current time, or the time of the newest entry if the clock was set back. No entry is younger. */
  readonly now: number
}

export function outboxSpan([now, oldestAt = Number.POSITIVE_INFINITY]: OutboxSpanReply): OutboxSpan {
  return { now, oldestAt }
}
