// GET /livez shows whether this process must be restarted, and GET /readyz shows whether it can receive requests.
import { BullpenError } from '@bullpen/contract'
import { withTimeout } from '@bullpen/engine/node'
import type { ApiContext } from '../http/context.ts'

/** How long the readiness check waits for Redis, in ms. Probes usually time out after 1 s. */
const READY_WITHIN_MS = 500
/**
 * How long the API stays ready after Redis has last accepted a write, in ms. All API processes depend on the same Redis: if a short outage
 * made none of them ready, callers would get no connection instead of an error that says what is wrong.
 */
const READY_FOR_MS = 15_000

/** Reports liveness, which does not depend on Redis because restarting this process would not bring Redis back. */
export function reportAlive() {
  return async () => ({ status: 'alive' as const })
}

/** Sends Redis one command for each probe. */
export function reportReady(
  { broker, closing }: Pick<ApiContext, 'broker' | 'closing'>,
  monotonic = () => performance.now(),
) {
  let readyUntil = Number.NEGATIVE_INFINITY
  return async () => {
    if (closing.aborted) throw new BullpenError('shutting_down', 'the API is shutting down')
    const answered = withTimeout(broker.ping(), READY_WITHIN_MS, noResponse).then(() => {
      readyUntil = monotonic() + READY_FOR_MS
    })
    await answered.catch((error: unknown) => {
      if (monotonic() >= readyUntil) throw error
    })
    return { status: 'ready' as const }
  }
}

function noResponse(): BullpenError {
  return new BullpenError('redis_unavailable', `Redis did not respond within ${READY_WITHIN_MS} ms`)
}
