// Defines the options of a call's idempotency key, and checks the key.
import { type Duration, milliseconds } from '@bullpen/contract'
import { MAX_IDEMPOTENCY_KEY, ProblemError } from '@bullpen/contract/internal'

export interface IdempotencyOptions {
  /**
   * A string of 1 to 255 printable ASCII characters. Calls with the same key and the same request, even from different processes,
   * enqueue only one task. In a bulk call, the key and a task's index together identify the task. By default, the client generates
   * a new key for each call, which makes only the client's own retries safe.
   */
  readonly idempotencyKey?: string
  /**
   * How long the key is remembered, in whole seconds. Defaults to the time that the queue or the API sets, and can only shorten it.
   * A key with another life is another key, so pass the same life when you repeat a call.
   * Keys that the client generates are remembered for 10 minutes by default, and always for as long as the client may repeat the
   * call, unless the queue or the API sets a shorter time.
   */
  readonly idempotencyLife?: Duration
}

interface CheckedIdempotency {
  readonly idempotencyKey: string | undefined
  readonly idempotencyLifeS: number | undefined
}

/**
 * Checks the options, whichever transport carries them. @throws ProblemError `invalid_request` if the key is empty, too long, or contains
 * characters other than printable ASCII, and BullpenError `invalid_duration`.
 */
export function checkedIdempotency(
  idempotencyKey: string | undefined,
  idempotencyLife: Duration | undefined,
): CheckedIdempotency {
  const lifeMs = idempotencyLife === undefined ? undefined : milliseconds(idempotencyLife, 'idempotencyLife')
  const idempotencyLifeS = lifeMs === undefined ? undefined : Math.max(1, Math.ceil(lifeMs / 1_000))
  // Plain JavaScript may pass a number, which a transport could not send.
  const isValid =
    idempotencyKey === undefined || (typeof idempotencyKey === 'string' && /^[\x20-\x7e]+$/.test(idempotencyKey))
  if (isValid && (idempotencyKey?.length ?? 0) <= MAX_IDEMPOTENCY_KEY) return { idempotencyKey, idempotencyLifeS }
  const message = `expected 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, got ${JSON.stringify(idempotencyKey)}`
  throw new ProblemError({
    code: 'invalid_request',
    outcome: 'refused',
    detail: `idempotencyKey: ${message}`,
    errors: [{ parameter: 'idempotencyKey', message }],
  })
}
