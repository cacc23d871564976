// Reads a task's input as JSON from the command line or standard input.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { isSystemError } from '../bulk/source.ts'
import { unsendable } from './json-value.ts'
import { UsageError } from './usage-error.ts'

/**
 * Parses `text`, or all of `stdin` if `text` is `-`. Returns `{}` if `text` is undefined. @throws UsageError if it cannot be read or
 * sent as JSON.
 */
export async function readInput(text: string | undefined, stdin: Readable): Promise<unknown> {
  if (text === undefined) return {}
  return text === '-' ? parse('standard input', decodeUtf8(await readAll(stdin))) : parse('INPUT', text)
}

async function readAll(stdin: Readable): Promise<Uint8Array> {
  try {
    return await buffer(stdin)
  } catch (error) {
    throw isSystemError(error) ? new UsageError(`cannot read standard input: ${error.message}`) : error
  }
}

function parse(source: string, text: string): unknown {
  const value = parseJson(source, text)
  const problem = unsendable(value)
  if (problem !== undefined) throw new UsageError(`${source} ${problem}`)
  return value
}

function parseJson(source: string, text: string): unknown {
  if (text.trim() === '') throw new UsageError(`${source} is empty; expected JSON, such as {"n":5}`)
  try {
    return JSON.parse(text)
  } catch (error) {
    // Node's message contains either the position or the text around it.
    const reason = (error as SyntaxError).message.replace(/ is not valid JSON$/, '')
    throw new UsageError(`${source} is not valid JSON: ${reason}`)
  }
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError('standard input is not valid UTF-8')
  }
}
