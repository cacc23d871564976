// Declares which file system errors are permanent and which may not occur again in another attempt.
import { TaskError } from '@bullpen/contract'

const PERMANENT: Readonly<Record<string, readonly [code: string, meaning: string]>> = {
  ENOENT: ['not_found', 'does not exist'],
  ENOTDIR: ['not_found', 'contains a component that is not a directory'],
  ENAMETOOLONG: ['not_found', 'is longer than a path can be'],
  ELOOP: ['not_a_file', 'is a symbolic link that cannot be followed'],
  // A socket, or a device without a driver.
  ENXIO: ['not_a_file', 'is not a regular file'],
  EISDIR: ['not_a_file', 'is a directory'],
  EACCES: ['not_readable', 'is not readable by this worker'],
  EPERM: ['not_readable', 'is not readable by this worker'],
}

export function permanent(code: string, message: string, cause?: unknown): TaskError {
  return new TaskError(code, message, { retryable: false, cause })
}

/** Returns a TaskError for a file system error. Any other error is returned unchanged and counts as a panic. */
export function declared(error: unknown, path: string): unknown {
  if (error instanceof TaskError || !isSystemError(error)) return error
  const known = PERMANENT[error.code]
  // The path in the error is more precise, because it may name a directory deep in a tree.
  const place = JSON.stringify(error.path === undefined ? path : String(error.path))
  if (known !== undefined) return permanent(known[0], `${place} ${known[1]} (${error.code})`, error)
  // EIO, EMFILE, ENFILE, ENOMEM, ESTALE and similar errors are transient.
  return new TaskError('io_error', `${place} cannot be read: ${error.code}`, { cause: error })
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException & { code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}
