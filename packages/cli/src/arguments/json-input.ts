// Reads a task's input as JSON from the command line or standard input.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { isSystemError, openSource } from '../bulk/source.ts'
import { unsendable } from './json-value.ts'
import { UsageError } from './usage-error.ts'

const EXPECTED = 'expected JSON, such as {"n":5}'

/** The argument or the option that contains the input, as error messages name it. */
type InputSource = 'INPUT' | '--input'

/**
 * Parses `text`, which was given as `source`, or all of `stdin` if `text` is `-`. Returns `{}` if `text` is undefined.
 *
 * @throws UsageError if it cannot be read or sent as JSON.
 */
export async function readInput(source: InputSource, text: string | undefined, stdin: Readable): Promise<unknown> {
  if (text === undefined) return {}
  if (text === '-') return await readInputFile(text, stdin)
  return parseJsonInput(source, text, `${EXPECTED}, or - to read it from standard input`)
}

/** Parses all of a file, or of `stdin` if `file` is `-`. @throws UsageError if it cannot be read or sent as JSON. */
export async function readInputFile(file: string, stdin: Readable): Promise<unknown> {
  const source = file === '-' ? 'standard input' : file
  return parseJsonInput(source, decodeUtf8(await readAll(await openSource(file, stdin), source), source), EXPECTED)
}

async function readAll(stream: Readable, source: string): Promise<Uint8Array> {
  try {
    return await buffer(stream)
  } catch (error) {
    throw isSystemError(error) ? new UsageError(`cannot read ${source}: ${error.message}`) : error
  }
}

/** Parses JSON. `source` names its place in messages. @throws UsageError if the text is not JSON or cannot be sent. */
export function parseJsonInput(source: string, text: string, expected: string = EXPECTED): unknown {
  const value = parseJson(source, text, expected)
  const problem = unsendable(value)
  if (problem !== undefined) throw new UsageError(`${source} ${problem}`)
  return value
}

function parseJson(source: string, text: string, expected: string): unknown {
  if (text.trim() === '') throw new UsageError(`${source} is empty; ${expected}`)
  try {
    return JSON.parse(text)
  } catch (error) {
    // Node's message contains either the position or the text around it.
    const reason = (error as SyntaxError).message.replace(/ is not valid JSON$/, '')
    throw new UsageError(`${source} is not valid JSON: ${reason}; ${expected}`)
  }
}

function decodeUtf8(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError(`${source} is not valid UTF-8`)
  }
}
