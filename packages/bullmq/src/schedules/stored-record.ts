// Converts schedules to and from the text that Redis stores.
import type { PayloadCodec } from '@bullpen/engine'
import { decodePayload, encodePayload, type ScheduleRecord } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'

/** The record as it is stored. With a codec, the input is encoded, like that of a task. */
type EncodedRecord = ScheduleRecord & { readonly encodedInput?: unknown }

/** Returns '' if there is no record. */
export function encodeRecord(record: ScheduleRecord | undefined, codec: PayloadCodec | undefined): string {
  if (record === undefined) return ''
  if (codec === undefined) return JSON.stringify(record)
  const { input, ...template } = record.template
  return JSON.stringify({ ...record, template, encodedInput: encodePayload(input, codec) })
}

/** @throws Error if the input was encoded by a codec that this process does not have. */
export function decodeRecord(text: string, codec: PayloadCodec | undefined): ScheduleRecord | undefined {
  const parsed = parseJson(text)
  if (!isRecord(parsed)) return undefined
  const { encodedInput, ...record } = parsed
  if (encodedInput === undefined) return record
  return { ...record, template: { ...record.template, input: decodePayload(encodedInput, codec) } }
}

/** Parses the value of a schedule in Redis, which is a token and the record. An encoded input is not decoded, and is left out. */
export function parseRecord(stored: string): ScheduleRecord | undefined {
  const parsed = parseJson(stored.slice(stored.indexOf(' ') + 1))
  return isRecord(parsed) ? parsed : undefined
}

/** Only Bullpen writes these records, so their fields are not checked one by one. */
function isRecord(value: unknown): value is EncodedRecord {
  return typeof value === 'object' && value !== null && 'cadence' in value && 'template' in value && 'cursor' in value
}
