// Opens and reads the file that a bulk enqueue reads.
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { UsageError } from '../arguments/usage-error.ts'

/** Returns standard input if `file` is `-`. @throws UsageError if the file cannot be opened. */
export async function openSource(file: string, stdin: Readable): Promise<Readable> {
  if (file === '-') return stdin
  const handle = await open(file).catch((error: unknown) => {
    throw isSystemError(error) ? new UsageError(unreadable(file, error)) : error
  })
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream()
  await handle.close()
  throw new UsageError(`cannot read ${file}: it is a directory`)
}

/** The source could be opened, but not be read to its end. */
export class SourceError extends Error {}

/** Yields the chunks of the source. @throws SourceError if the operating system cannot read it. */
export async function* readSource(source: Readable, file: string): AsyncGenerator<Uint8Array | string> {
  try {
    yield* source
  } catch (error) {
    throw isSystemError(error) ? new SourceError(unreadable(file, error), { cause: error }) : error
  }
}

/** Returns whether an error comes from the operating system, such as a failed read. */
export function isSystemError(error: unknown): error is Error & { readonly syscall: string } {
  return error instanceof Error && 'syscall' in error
}

function unreadable(file: string, { message }: Error): string {
  return `cannot read ${file === '-' ? 'standard input' : file}: ${message}`
}
