// Creates the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header), which makes an enqueue safe to repeat.
import { randomId } from '../random-id.ts'

/** How long the API remembers a key that the client has generated, unless the client needs it for longer, in seconds. */
const GENERATED_KEY_LIFE_S = 600

interface IdempotencyKeySettings {
  /** The caller's key. If undefined, a key is generated, which only this client's repeats of the request have. */
  readonly key: string | undefined
  /** How long the caller wants the API to remember the key, in seconds. */
  readonly lifeS: number | undefined
  /** How long after the first try the last one may still arrive, in ms. A generated key is remembered for at least this time. */
  readonly repeatedForMs: number
}

/** Returns the header for the caller's key, or for a generated key if the caller has none. */
export function idempotencyHeader({ key, lifeS, repeatedForMs }: IdempotencyKeySettings): string {
  const generatedLifeS = Math.max(lifeS ?? GENERATED_KEY_LIFE_S, Math.ceil(repeatedForMs / 1_000))
  const life = key === undefined ? generatedLifeS : lifeS
  const text = key?.replaceAll(/["\\]/g, '\\$&') ?? randomId()
  return life === undefined ? `"${text}"` : `"${text}";life=${life}`
}
