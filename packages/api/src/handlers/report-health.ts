// GET /livez shows whether this process must be restarted, and GET /readyz shows whether it can receive requests.
import { BullpenError } from '@bullpen/contract'
import { withTimeout } from '@bullpen/engine/node'
import type { ApiContext } from '../http/context.ts'

/** How long the readiness check waits for Redis, in ms. Probes usually time out after 1 s. */
const READY_WITHIN_MS = 500

/** Reports liveness, which does not depend on Redis because restarting this process would not bring Redis back. */
export function reportAlive() {
  return async () => ({ status: 'alive' as const })
}

export function reportReady({ broker, closing }: ApiContext) {
  return async () => {
    if (closing.aborted) throw new BullpenError('shutting_down', 'the API is shutting down')
    await withTimeout(broker.ping(), READY_WITHIN_MS, noResponse)
    return { status: 'ready' as const }
  }
}

function noResponse(): BullpenError {
  return new BullpenError('redis_unavailable', `Redis did not respond within ${READY_WITHIN_MS} ms`)
}
