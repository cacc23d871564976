// The walk of a directory tree: what `find DIR -type f` finds, in bytes, since a name need not be UTF-8.
import { readdir } from 'node:fs/promises'

export interface Listing {
  /** Paths relative to the directory, in the order of the walk. */
  readonly files: readonly Buffer[]
  /** What ended the walk before its end, or undefined. To be looked at after all results (Go's MD5All). */
  readonly error: unknown
}

interface ListOptions {
  /** Names right below the directory that are left out, files and directories alike. */
  readonly exclude?: ReadonlySet<string>
  readonly signal?: AbortSignal
}

const SLASH = Buffer.from('/')

/** `directory/name`, with the one slash that `find` puts between them. */
export function joinPath(directory: string, name: string): string {
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`
}

/**
 * Every regular file below `directory`; symbolic links are not followed. Never rejects for what it finds: the first
 * directory that can't be read ends the walk and is told in `error`.
 *
 * @throws the signal's reason when it aborts.
 */
export async function listFiles(directory: string, { exclude, signal }: ListOptions = {}): Promise<Listing> {
  const files: Buffer[] = []
  const root = Buffer.from(directory)
  // Undefined is the directory itself.
  const open: (Buffer | undefined)[] = [undefined]
  while (open.length > 0) {
    signal?.throwIfAborted()
    const inside = open.pop()
    try {
      const place = inside === undefined ? root : Buffer.concat([root, SLASH, inside])
      for (const entry of await readdir(place, { withFileTypes: true, encoding: 'buffer' })) {
        if (inside === undefined && exclude?.has(entry.name.toString())) continue
        const path = inside === undefined ? entry.name : Buffer.concat([inside, SLASH, entry.name])
        if (entry.isDirectory()) open.push(path)
        else if (entry.isFile()) files.push(path)
      }
    } catch (error) {
      return { files, error }
    }
  }
  return { files, error: undefined }
}
