// Converts payloads to and from their stored form. Without a codec, an input or output is stored as a value, and a step's result
// as JSON. With a codec, each payload is stored as the string that the codec returns for the payload's JSON, and a step's result
// also starts with a mark.
import type { PayloadCodec } from '../../ports/payload-codec.ts'

/**
 * Encodes an input or output. Returns undefined if there is no payload, because JSON cannot represent undefined. `json` is the
 * value's JSON.
 */
export function encodePayload(
  value: unknown,
  codec: PayloadCodec,
  json: string | undefined = JSON.stringify(value),
): string | undefined {
  return json === undefined ? undefined : codec.encode(json)
}

/** Decodes an input or output. @throws Error if there is no codec, if the codec cannot decode the string, or if the result is not JSON. */
export function decodePayload(stored: unknown, codec: PayloadCodec | undefined): unknown {
  if (codec === undefined) throw new Error('the value was encoded by a codec, but this process has no codec')
  if (typeof stored !== 'string') throw new Error(`expected a string from a codec, got ${typeof stored}`)
  const text = codec.decode(stored)
  try {
    return JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the text, which the codec keeps secret.
    throw new Error('what the codec has decoded is not JSON')
  }
}

/** Marks the result of a step as encoded. Valid JSON never starts with this character. */
const ENCODED = '~'

export function encodeStep(json: string, codec: PayloadCodec | undefined): string {
  return codec === undefined ? json : ENCODED + codec.encode(json)
}

/**
 * Decodes the result of a step if it is marked as encoded. @throws Error if there is no codec, or if the codec cannot decode the
 * string.
 */
export function decodeStep(stored: string, codec: PayloadCodec | undefined): string {
  if (!stored.startsWith(ENCODED)) return stored
  if (codec === undefined) throw new Error("the step's result was encoded by a codec, but this process has no codec")
  return codec.decode(stored.slice(ENCODED.length))
}
