// Creates the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header), which makes an enqueue safe to repeat.
import { MAX_IDEMPOTENCY_KEY, ProblemError } from '@bullpen/contract/internal'
import { randomId } from '../random-id.ts'

/**
 * How long the API remembers a key that the client has generated, in seconds. Only this client repeats the request, and it does so
 * for a much shorter time.
 */
const GENERATED_KEY_LIFE_S = 600

/**
 * Returns the header for the caller's key, or for a generated key if the caller has none. @throws ProblemError `invalid_request` if
 * the key is empty, too long, or contains characters other than printable ASCII.
 */
export function idempotencyHeader(key: string | undefined): string {
  if (key === undefined) return `"${randomId()}";life=${GENERATED_KEY_LIFE_S}`
  if (!/^[\x20-\x7e]+$/.test(key) || key.length > MAX_IDEMPOTENCY_KEY) {
    const message = `expected 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, got ${JSON.stringify(key)}`
    throw new ProblemError({
      code: 'invalid_request',
      outcome: 'refused',
      detail: `idempotencyKey: ${message}`,
      errors: [{ parameter: 'idempotencyKey', message }],
    })
  }
  return `"${key.replaceAll(/["\\]/g, '\\$&')}"`
}
