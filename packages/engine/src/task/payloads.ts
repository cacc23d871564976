// Payloads as they are stored: an input or output is a value, or the text that a codec has made of its JSON; the result of a step is
// JSON, or a codec's text behind a mark.
import type { PayloadCodec } from '../ports/payload-codec.ts'

/** Returns undefined if there is no payload, since JSON cannot represent undefined. */
export function encodePayload(value: unknown, codec: PayloadCodec): string | undefined {
  const json = JSON.stringify(value)
  return json === undefined ? undefined : codec.encode(json)
}

/** @throws Error if there is no codec, or if the codec cannot decode the text. */
export function decodePayload(stored: unknown, codec: PayloadCodec | undefined): unknown {
  if (codec === undefined) throw new Error('a codec has encoded it, and this process has none')
  if (typeof stored !== 'string') throw new Error(`it is ${typeof stored} instead of text from a codec`)
  return JSON.parse(codec.decode(stored))
}

/** No JSON text begins with this character. */
const ENCODED = '~'

export function encodeStep(json: string, codec: PayloadCodec | undefined): string {
  return codec === undefined ? json : ENCODED + codec.encode(json)
}

/** @throws Error if a codec has encoded the result, and there is none or it cannot decode the text. */
export function decodeStep(stored: string, codec: PayloadCodec | undefined): string {
  if (!stored.startsWith(ENCODED)) return stored
  if (codec === undefined) throw new Error('a codec has encoded the result of the step, and this process has none')
  return codec.decode(stored.slice(ENCODED.length))
}
