// Creates the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header), which makes an enqueue safe to repeat.
import { randomId } from '../random-id.ts'

/**
 * How long the API remembers a key that the client has generated, in seconds. Only this client repeats the request, and it does so
 * for a much shorter time.
 */
const GENERATED_KEY_LIFE_S = 600

/** Returns the header for the caller's key, or for a generated key if the caller has none. `lifeS` is in seconds. */
export function idempotencyHeader(key: string | undefined, lifeS: number | undefined): string {
  const life = lifeS ?? (key === undefined ? GENERATED_KEY_LIFE_S : undefined)
  const text = key?.replaceAll(/["\\]/g, '\\$&') ?? randomId()
  return life === undefined ? `"${text}"` : `"${text}";life=${life}`
}
