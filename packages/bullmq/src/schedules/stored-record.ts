// Converts schedules to and from the text that Redis stores.
import type { PayloadCodec } from '@bullpen/engine'
import { decodePayload, encodePayload, type ScheduleRecord } from '@bullpen/engine/internal'
import { parseJson } from '../codec.ts'

/** The record as it is stored. With a codec, the input is encoded, like that of a task, and so are the follow-ups. */
type EncodedRecord = Omit<ScheduleRecord, 'unreadableInput'> & {
  readonly encodedInput?: unknown
  readonly encodedFollowUps?: unknown
}

/** Returns '' if there is no record. */
export function encodeRecord(given: ScheduleRecord | undefined, codec: PayloadCodec | undefined): string {
  if (given === undefined) return ''
  const { unreadableInput, ...record } = given
  if (unreadableInput === undefined && codec === undefined) return JSON.stringify(record)
  const { input, followUps, ...template } = record.template
  const encodedInput = unreadableInput?.encoded ?? (codec && encodePayload(input, codec))
  const encodedFollowUps = unreadableInput?.encodedFollowUps ?? (codec && followUps && encodePayload(followUps, codec))
  return JSON.stringify({ ...record, template, encodedInput, encodedFollowUps })
}

/** If the input was encoded by a codec that this process does not have, the record has `unreadableInput` instead. */
function decodeRecord(text: string, codec: PayloadCodec | undefined): ScheduleRecord | undefined {
  const parsed = parseJson(text)
  if (!isRecord(parsed)) return undefined
  const { encodedInput, encodedFollowUps, ...record } = parsed
  if (encodedInput === undefined && encodedFollowUps === undefined) return record
  try {
    const input = encodedInput === undefined ? undefined : decodePayload(encodedInput, codec)
    // Only Bullpen writes them.
    const followUps =
      encodedFollowUps === undefined
        ? undefined
        : (decodePayload(encodedFollowUps, codec) as ScheduleRecord['template']['followUps'])
    return { ...record, template: { ...record.template, input, followUps } }
  } catch (error) {
    return { ...record, unreadableInput: { encoded: encodedInput, encodedFollowUps, reason: reasonOf(error) } }
  }
}

/** Parses the value of a schedule in Redis, which is a token and the record. */
export function parseStored(stored: string, codec: PayloadCodec | undefined): ScheduleRecord | undefined {
  return decodeRecord(stored.slice(stored.indexOf(' ') + 1), codec)
}

/** The message of a syntax error quotes the text, which may be confidential. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'the codec returned text that is not JSON'
  return error instanceof Error ? error.message : String(error)
}

/** Only Bullpen writes these records, so their fields are not checked one by one. */
function isRecord(value: unknown): value is EncodedRecord {
  return typeof value === 'object' && value !== null && 'cadence' in value && 'template' in value && 'cursor' in value
}
