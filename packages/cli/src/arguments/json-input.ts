// A task's input, from the command line or from standard input.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type JsonFault, jsonFault } from './json-fault.ts'
import { UsageError } from './usage-error.ts'

/** `-` reads all of `stdin`; undefined is `{}`. @throws UsageError with the place where it stops being JSON. */
export async function readInput(text: string | undefined, stdin: Readable): Promise<unknown> {
  if (text === undefined) return {}
  return text === '-' ? parse('standard input', utf8(await buffer(stdin))) : parse('INPUT', text)
}

function parse(source: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const fault = jsonFault(text)
    throw fault === undefined ? error : new UsageError(told(source, fault))
  }
}

function told(source: string, { line, column, expected, found }: JsonFault): string {
  const there = found === '' ? 'it ends' : `there is ${JSON.stringify(found)}`
  return `${source} is not JSON: line ${line}, column ${column}: ${there} where ${expected} is expected`
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError('standard input is not UTF-8')
  }
}
