// Reads the tasks of a bulk enqueue from the lines of a file.
import type { EnqueueRequest } from '@bullpen/contract'
import type { parseEnqueueOptions } from '../arguments/enqueue-options.ts'
import { decodeUtf8, readJson, unsendable } from '../arguments/json-value.ts'
import { type Line, splitLines } from './lines.ts'

export interface TaskLine {
  readonly number: number
  readonly task: EnqueueRequest
  /** The size of the task in a request's body. */
  readonly bytes: number
}

/** A line that is not a task, and why. */
export interface BadLine {
  readonly number: number
  readonly problem: string
}

export interface LineFormat {
  /** If set, each line is the input of a task with this name. Otherwise, each line is a task, like the body of POST /v1/tasks. */
  readonly task: string | undefined
  /** The options of the command line, which apply to every task. The fields of a line override them. */
  readonly defaults: ReturnType<typeof parseEnqueueOptions>
  /** The longest line, in bytes. */
  readonly maxBytes: number
}

const EXPECTED = 'expected a JSON object such as {"task":"math.factorial","input":{"n":5}}'

/** Yields every line of the source that is not blank. */
export async function* readTaskLines(
  source: AsyncIterable<Uint8Array | string>,
  format: LineFormat,
): AsyncGenerator<TaskLine | BadLine> {
  for await (const line of splitLines(source, format.maxBytes)) {
    const parsed = parseLine(line, format)
    if (parsed !== undefined) yield parsed
  }
}

/** Returns undefined if the line is blank. */
function parseLine({ number, bytes }: Line, { task, defaults, maxBytes }: LineFormat): TaskLine | BadLine | undefined {
  const bad = (problem: string): BadLine => ({ number, problem })
  if (bytes === undefined) return bad(`longer than ${maxBytes.toLocaleString('en')} bytes`)
  const text = decodeUtf8(bytes)
  if (text === undefined) return bad('not valid UTF-8')
  if (text.trim() === '') return undefined
  const json = readJson(text)
  if ('problem' in json) return bad(`not valid JSON: ${json.problem}`)
  const { value } = json
  const problem = unsendable(value)
  if (problem !== undefined) return bad(problem)
  const request = task === undefined ? asTask(value) : { task, input: value }
  if (request === undefined) return bad(EXPECTED)
  const complete = { ...defaults, ...request }
  return { number, task: complete, bytes: Buffer.byteLength(JSON.stringify(complete)) }
}

function asTask(value: unknown): EnqueueRequest | undefined {
  if (typeof value !== 'object' || value === null || !('task' in value) || typeof value.task !== 'string')
    return undefined
  // The API checks all other fields.
  return value as EnqueueRequest
}
