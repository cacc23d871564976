// Reads the Idempotency-Key header, as in draft-ietf-httpapi-idempotency-key-header-07.
import { BullpenError } from '../../errors/errors.ts'

export interface IdempotencyKeyHeader {
  readonly key: string
  /** How long the first response is remembered, in seconds, if the caller wants less than the API's setting. */
  readonly life: number | undefined
}

export const MAX_IDEMPOTENCY_KEY = 255

/** The characters of a key that needs no quotes, apart from letters and digits. */
const BARE_CHARACTERS = "!#$%&'*+-./:^_`|~"

const EXPECTED = `expected 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters in quotes, such as "8e03978e-40d5", or without quotes if the key has only letters, digits and ${BARE_CHARACTERS}, optionally followed by ;life=SECONDS`

/** Describes the header in the API's reference, as Markdown. */
export const IDEMPOTENCY_KEY_FORM = `From 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters in quotes, such as \`"8e03978e-40d5"\`. A key that has only letters, digits and \`\` ${BARE_CHARACTERS} \`\` needs no quotes.`

/**
 * Matches a structured field (RFC 8941) that is a string, in which a backslash escapes a quote or a backslash. Also matches keys
 * without quotes, which are common although the draft does not allow them. These keys may contain the characters of a token, and
 * may also begin with a digit.
 */
const FORM =
  /^(?:"([\x20\x21\x23-\x5b\x5d-\x7e]*(?:\\["\\][\x20\x21\x23-\x5b\x5d-\x7e]*)*)"|([A-Za-z0-9!#$%&'*+.^_`|~:/-]+))((?:;.*)?)$/
const ESCAPED = /\\(.)/g
const LIFE = /^\s*;\s*life=([1-9]\d{0,8})$/

/**
 * Returns the key and the parameter `life`, or undefined if there is no header. @throws BullpenError `invalid_request` if the
 * header is malformed.
 */
export function readIdempotencyKey(header: string | readonly string[] | undefined): IdempotencyKeyHeader | undefined {
  if (header === undefined) return undefined
  const [, quoted, bare, parameters = ''] = (typeof header === 'string' && FORM.exec(header.trim())) || []
  const key = quoted?.replaceAll(ESCAPED, '$1') ?? bare ?? ''
  const life = parameters === '' ? undefined : LIFE.exec(parameters)?.[1]
  const isValid = key !== '' && key.length <= MAX_IDEMPOTENCY_KEY && (parameters === '' || life !== undefined)
  if (!isValid) {
    throw new BullpenError('invalid_request', `invalid Idempotency-Key header: ${EXPECTED}`, {
      errors: [{ header: 'Idempotency-Key', message: EXPECTED }],
    })
  }
  return { key, life: life === undefined ? undefined : Number(life) }
}
