// Walks a directory tree and finds what `find DIR -type f` finds. Names are bytes, because they need not be UTF-8.
import { readdir } from 'node:fs/promises'

export interface Listing {
  /** Paths relative to the directory, in the order of the walk. */
  readonly files: readonly Buffer[]
  /** The error that ended the walk early, or undefined. */
  readonly error: unknown
}

interface ListOptions {
  /** Names of files and directories directly below the directory that are left out. */
  readonly exclude?: ReadonlySet<string>
  readonly signal?: AbortSignal
}

const SLASH = Buffer.from('/')

/** `directory/name` with a single slash, as `find` joins them. */
export function joinPath(directory: string, name: string): string {
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`
}

/**
 * Every regular file below `directory`; symbolic links are not followed. The first directory that cannot be read ends the
 * walk, and is reported in `error`.
 *
 * @throws the signal's reason if it aborts.
 */
export async function listFiles(directory: string, { exclude, signal }: ListOptions = {}): Promise<Listing> {
  const files: Buffer[] = []
  const root = Buffer.from(directory)
  // Directories to read, relative to the root. Undefined is the root itself.
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
