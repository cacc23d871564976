// Determines the fingerprint of the error that made a task dead, which identifies the kind of the error.
//
// Two errors have the same fingerprint if they agree in the attempt's state, the error code, the message and the top stack frames.
// In the message and the frames, every word that contains a digit is masked, because such a word is usually a number, an id, or the
// position of a statement. In the message, quoted texts and paths are masked, too, because they usually come from the caller. Frames keep
// their paths, which tell two places in the code apart. Everything here depends only on the arguments.
import type { AttemptEndState, AttemptRecord } from '@bullpen/contract'
import { hex, type Sha256 } from '../task/digest.ts'

/** The kind of an error. */
export interface ErrorKind {
  /** 16 hexadecimal digits. */
  readonly fingerprint: string
  readonly state: AttemptEndState
  /** The code of the declared failure, or the reason why the attempt ended. */
  readonly code: string
  /** The masked message, at most 200 characters. */
  readonly message: string
}

/** The fingerprint that stands for all errors after the first {@link MAX_FINGERPRINTS} kinds. */
export const OTHER_FINGERPRINT = 'other'
/** The maximum number of fingerprints that a queue keeps apart at the same time. */
export const MAX_FINGERPRINTS = 1_000

const MAX_MESSAGE_CHARACTERS = 200
/** The rest of a longer message is not masked, because it would be cut off. */
const MAX_MASKED_CHARACTERS = 1_000
const FRAMES = 3
const HEX_DIGITS = 16

/** What can be an e-mail address as a whole, or else consists of words and punctuation. */
const PART = /[^\s"'<>(),;]+/g
/** Letters and digits of every script count. */
const WORD = /[\p{L}\p{M}\p{N}_-]+/gu
const DIGIT = /\p{N}/u
/** A text in quotes. If the closing one is missing, the text was cut off. An apostrophe within or after a word is no quote. */
const QUOTED = /(?<=^|[\s([{<:=,;])(?:(["'`])(?:\\.|(?!\1(?![\p{L}\p{M}\p{N}_#-])).)*(?:\1|$)|“[^”]*”?)/gsu
/** In these errors, the engine quotes names of the code, as in `(reading 'street')`. */
const NAMES_CODE = /^(?:Type|Reference)Error: /
const QUOTED_NAME = /^(["'`])[\p{L}_$][\p{L}\p{N}_$]*\1$/u
/** A path, a URL or an e-mail address contains a slash or an @ between other characters. */
const PATH_OR_ADDRESS = /[/\\]|[^([{]@[\p{L}\p{N}]/u
/** An id whose hexadecimal digits happen to be letters. */
const HEX_LETTERS = /(?<![\p{L}\p{M}\p{N}_-])[a-f][a-f-]{7,}(?![\p{L}\p{M}\p{N}_-])/giu
/** Parts of one number, date, IP address or list. */
const JOINED = /#(?:[.,:+]*#)+/g

/**
 * Returns the message on one line, with `#` in place of every quoted text, path, URL and e-mail address, and of every word that contains a
 * digit or consists of at least 8 hexadecimal ones. The names that a TypeError or ReferenceError quotes stay. Idempotent. Takes linear
 * time.
 */
export function maskMessage(message: string): string {
  const keepsNames = NAMES_CODE.test(message)
  const text = message
    .slice(0, MAX_MASKED_CHARACTERS)
    .replaceAll(QUOTED, (quoted) => (keepsNames && QUOTED_NAME.test(quoted) ? quoted : '#'))
  const withoutPaths = text.replaceAll(/\S+/g, (part) => (PATH_OR_ADDRESS.test(part) ? '#' : part))
  return mask(withoutPaths.replaceAll(HEX_LETTERS, '#')).replaceAll(JOINED, '#')
}

/**
 * Returns the text on one line, with `#` in place of every e-mail address and every word that contains a digit. Idempotent. Takes
 * linear time. A single expression for both would look for the end of a word again from each of its letters, which takes 130 ms
 * for 1,000 characters of a script without spaces.
 */
export function mask(text: string): string {
  return text.slice(0, MAX_MASKED_CHARACTERS).replaceAll(PART, maskPart).replaceAll(/\s+/g, ' ').trim()
}

function maskPart(part: string): string {
  const isAddress = part.lastIndexOf('@', part.length - 2) > 0
  return isAddress ? '#' : part.replaceAll(WORD, (word) => (DIGIT.test(word) ? '#' : word))
}

/** Returns at most 200 characters. Half of an emoji would not be a character. */
function cut(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARACTERS).replace(/[\uD800-\uDBFF]$/, '')
}

/** Returns the top frames of a stack without positions. A stack that is not a string has no frames. */
function topFrames(stack: unknown): readonly string[] {
  if (typeof stack !== 'string') return []
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return frames.slice(0, FRAMES).map(mask)
}

/** Returns the stack of an error. `error` may also be the stack itself. The property `stack` may be a getter that throws. */
function stackOf(error: unknown): unknown {
  if (typeof error === 'string') return error
  try {
    return error instanceof Error ? error.stack : undefined
  } catch {
    return undefined
  }
}

/** Returns the kind of the error with which an attempt ended. `error` is what the handler threw, if anything, or its stack. */
export function errorKind(
  { state, code, reason, message = '' }: Pick<AttemptRecord, 'state' | 'code' | 'reason' | 'message'>,
  error: unknown,
  sha256: Sha256,
): ErrorKind {
  const name = code ?? reason ?? state.toLowerCase()
  const masked = cut(maskMessage(message))
  const digest = sha256(JSON.stringify([state, name, masked, ...topFrames(stackOf(error))]))
  return { fingerprint: hex(digest).slice(0, HEX_DIGITS), state, code: name, message: masked }
}
