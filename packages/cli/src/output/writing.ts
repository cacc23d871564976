// Writes text to a stream and waits until the operating system has accepted it.
import type { Writable } from 'node:stream'

/** Reports that standard output cannot be written, for example because the disk is full. */
export class OutputError extends Error {}

/** The codes of the errors that mean that the reader has closed the pipe. */
const CLOSED: readonly unknown[] = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']

/**
 * Resolves to true once the text is written, or to false if the reader has closed the pipe, as `head` does.
 *
 * @throws OutputError if the text cannot be written for any other reason.
 */
export async function writeText(stream: Writable, text: string): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  stream.write(text, (error) => {
    if (error === null || error === undefined) resolve(true)
    else if ('code' in error && CLOSED.includes(error.code)) resolve(false)
    else reject(new OutputError(`cannot write to standard output: ${error.message}`, { cause: error }))
  })
  return await promise
}
