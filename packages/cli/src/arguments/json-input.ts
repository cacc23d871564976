// Reads a task's input as JSON from the command line or standard input.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { isSystemError, openSource } from '../bulk/source.ts'
import { decodeUtf8, readJson, unsendable } from './json-value.ts'
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
  const text = decodeUtf8(await readAll(await openSource(file, stdin), source))
  if (text === undefined) throw new UsageError(`${source} is not valid UTF-8`)
  return parseJsonInput(source, text)
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
  if (text.trim() === '') throw new UsageError(`${source} is empty; ${expected}`)
  const json = readJson(text)
  if ('problem' in json) throw new UsageError(`${source} is not valid JSON: ${json.problem}; ${expected}`)
  const problem = unsendable(json.value)
  if (problem !== undefined) throw new UsageError(`${source} ${problem}`)
  return json.value
}
