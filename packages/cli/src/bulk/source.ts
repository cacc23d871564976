// Opens the file that a bulk enqueue reads.
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { UsageError } from '../arguments/usage-error.ts'

/** Returns standard input if `file` is `-`. @throws UsageError if the file cannot be opened. */
export async function openSource(file: string, stdin: Readable): Promise<Readable> {
  if (file === '-') return stdin
  const handle = await open(file).catch((error: unknown) => {
    throw isSystemError(error) ? unreadable(file, error) : error
  })
  if (!(await handle.stat()).isDirectory()) return handle.createReadStream()
  await handle.close()
  throw new UsageError(`cannot read ${file}: it is a directory`)
}

/** Returns whether an error comes from the operating system, such as a failed read. */
export function isSystemError(error: unknown): error is Error & { readonly syscall: string } {
  return error instanceof Error && 'syscall' in error
}

export function unreadable(file: string, { message }: Error): UsageError {
  return new UsageError(`cannot read ${file === '-' ? 'standard input' : file}: ${message}`)
}
