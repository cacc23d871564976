// Writes the list to a stream that may be slow, or whose reader may close it.
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const CHUNK_LENGTH = 64 * 1_024

/** Resolves to true once everything is written, or to false if the reader has closed the pipe, as `head` does. */
export async function writeLines(stream: Writable, lines: readonly string[]): Promise<boolean> {
  try {
    await pipeline(Readable.from(chunks(lines)), stream, { end: false })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return false
    throw error
  }
}

function* chunks(lines: readonly string[]): Generator<string> {
  let chunk = ''
  for (const line of lines) {
    chunk += line
    if (chunk.length >= CHUNK_LENGTH) {
      yield chunk
      chunk = ''
    }
  }
  if (chunk !== '') yield chunk
}
