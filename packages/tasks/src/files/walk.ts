// Walks a directory tree and finds the same files as `find DIR -type f`. Names are bytes because they may not be valid UTF-8.
import { readdir } from 'node:fs/promises'

export interface Listing {
  /** Paths relative to the directory, in the order of the walk. */
  readonly files: readonly Buffer[]
  /** The error that ended the walk early, or undefined. */
  readonly error: unknown
}

interface ListOptions {
  /** The names of files and directories directly below the directory that are skipped. */
  readonly exclude?: ReadonlySet<string>
  readonly signal?: AbortSignal
}

const SLASH = Buffer.from('/')

/** Returns `directory/name` with a single slash, as `find` does. */
export function joinPath(directory: string, name: string): string {
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`
}

/**
 * Lists every regular file below `directory`. Symbolic links are not followed. If a directory cannot be read, the walk ends, and
 * `error` reports why.
 *
 * @throws the signal's reason if it aborts.
 */
export async function listFiles(directory: string, { exclude, signal }: ListOptions = {}): Promise<Listing> {
  const files: Buffer[] = []
  const root = Buffer.from(directory)
  // The directories that are left to read, relative to the root. Undefined stands for the root itself.
  const pending: (Buffer | undefined)[] = [undefined]
  while (pending.length > 0) {
    signal?.throwIfAborted()
    const folder = pending.pop()
    try {
      const absolute = folder === undefined ? root : Buffer.concat([root, SLASH, folder])
      for (const entry of await readdir(absolute, { withFileTypes: true, encoding: 'buffer' })) {
        if (folder === undefined && exclude?.has(entry.name.toString())) continue
        const path = folder === undefined ? entry.name : Buffer.concat([folder, SLASH, entry.name])
        if (entry.isDirectory()) pending.push(path)
        else if (entry.isFile()) files.push(path)
      }
    } catch (error) {
      return { files, error }
    }
  }
  return { files, error: undefined }
}
