// Makes the claims of outboxes look as if the processes that made them had died.
import type { Redis } from 'ioredis'

/** Makes a claim so old that another process may take it over, in ms. */
const LONG_AGO_MS = 60_000

/** Ages each claim in these outboxes that is at least `olderThanMs` old. */
export async function ageClaims(redis: Redis, outboxes: readonly string[], olderThanMs = 0): Promise<void> {
  for (const outbox of outboxes) {
    // The consumer group does not exist before the first claim.
    const pending = await redis.xpending(outbox, 'forwarders', 'IDLE', olderThanMs, '-', '+', 1_000).catch(() => [])
    for (const [entry] of pending as [string][]) {
      await redis.xclaim(outbox, 'forwarders', 'forwarder', 0, entry, 'IDLE', LONG_AGO_MS, 'JUSTID').catch(() => {})
    }
  }
}
