// Defines the values of a pipeline run as text. A value is what one stage returns and the next one gets as its input.
//
//   {"n":1}              JSON
//   ~"q83v"              what a codec has made of the JSON, as a JSON string
//   *{"n":1}\n{"n":2}    a batch: the values of its items, one a line, in either of the forms above
//
// None of these forms but the last contains a line break. A value passes from stage to stage as it is, and a script makes a batch without
// parsing any value. No process on the way therefore needs the codec.
import type { Envelope, StoredSuccess } from '@bullpen/contract/internal'
import type { PayloadCodec } from '../../ports/payload-codec.ts'
import { decodePayload, encodePayload } from './payloads.ts'

/** Valid JSON never starts with these characters. */
const ENCODED = '~'
export const BATCH_MARK = '*'

/** Returns the value that a task's stored result passes on, or '' if the task has no output. */
export function textOfResult({ output, encoded }: Pick<StoredSuccess, 'output' | 'encoded'>): string {
  if (output === undefined) return ''
  return encoded === true ? ENCODED + JSON.stringify(output) : JSON.stringify(output)
}

/** Returns an item as it is passed on, or '' if it is undefined. */
export function encodeValue(item: unknown, codec: PayloadCodec | undefined): string {
  return codec === undefined
    ? textOfResult({ output: item })
    : textOfResult({ output: encodePayload(item, codec), encoded: true })
}

/** Returns the batch of these values. A value is never a batch itself. */
export function batchText(values: readonly string[]): string {
  return BATCH_MARK + values.join('\n')
}

/** @throws Error if the value is encoded and there is no codec, or if the codec cannot decode it. */
export function decodeValue(value: string, codec: PayloadCodec | undefined): unknown {
  if (value === '') return undefined
  if (value.startsWith(BATCH_MARK)) return itemsOf(value).map((item) => decodeValue(item, codec))
  return value.startsWith(ENCODED) ? decodePayload(JSON.parse(value.slice(1)), codec) : JSON.parse(value)
}

function itemsOf(batch: string): readonly string[] {
  return batch.slice(1).split('\n')
}

/** Returns the JSON of the fields with which an envelope contains the value as its input. */
export function inputFields(value: string): string {
  if (value.startsWith(ENCODED)) return `"input":${value.slice(1)},"encoded":true`
  if (!value.startsWith(BATCH_MARK)) return `"input":${value}`
  const items = itemsOf(value)
  return items.some((item) => item.startsWith(ENCODED))
    ? `"input":${JSON.stringify(items)},"encoded":"items"`
    : `"input":[${items.join()}]`
}

/** Returns the input that an envelope contains. @throws Error like {@link decodeValue}. */
export function decodeInput(
  { input, encoded }: Pick<Envelope, 'input' | 'encoded'>,
  codec: PayloadCodec | undefined,
): unknown {
  if (encoded === undefined) return input
  return encoded === true
    ? decodePayload(input, codec)
    : (input as readonly string[]).map((item) => decodeValue(item, codec))
}
