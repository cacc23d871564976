// Defines a Lua function that reads when the oldest entry of an outbox was written, and which time it is.
import { TIME } from './time.ts'

/** The times between which the entries of an outbox were written, in ms since 1970 by the clock of its node. */
export interface OutboxSpan {
  /** When the oldest entry was written. Infinity if the outbox is empty. */
  readonly oldestAt: number
  /** The current time, or the time of the newest entry if the clock was set back. No entry is younger. */
  readonly now: number
}

/** `outbox_span(outbox)` returns a list that {@link outboxSpan} decodes. */
export const OUTBOX_SPAN = `${TIME}
local function outbox_span(outbox)
  local function written_at(entries) return entries[1] and tonumber(string.match(entries[1][1], '^%d+')) end
  local oldest = written_at(redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1))
  local newest = written_at(redis.call('XREVRANGE', outbox, '+', '-', 'COUNT', 1))
  return { math.max(millis(), newest or 0), oldest }
end
`

export function outboxSpan(reply: unknown): OutboxSpan {
  const [now, oldestAt = Number.POSITIVE_INFINITY] = reply as [number, number?]
  return { now, oldestAt }
}
