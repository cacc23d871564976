// GET /livez and /readyz: whether to restart this worker, and whether to send it requests.
import { BullpenError } from '@bullpen/contract'
import type { ApiContext } from '../http/context.ts'

/** Probes usually give up after a second. */
const READY_WITHIN_MS = 500

/** Redis plays no part: a restart of this worker would not mend it. */
export function reportAlive() {
  return async () => ({ status: 'alive' as const })
}

export function reportReady({ broker, closing }: ApiContext) {
  return async () => {
    if (closing.aborted) throw new BullpenError('shutting_down', 'this worker is shutting down')
    await within(READY_WITHIN_MS, broker.ping())
    return { status: 'ready' as const }
  }
}

async function within(ms: number, answer: Promise<void>): Promise<void> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new BullpenError('redis_unavailable', `Redis has not answered within ${ms} ms`)),
    ms,
  )
  try {
    await Promise.race([answer, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
