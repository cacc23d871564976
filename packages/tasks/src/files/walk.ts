// Walks a directory tree and finds the same files as `find DIR -type f`, in the order in which `LC_ALL=C sort` sorts their paths.
//
// The order makes the path of a file a position in the walk: everything after it is still to come, also if files were added or removed
// in the meantime. A directory is compared with a slash at its end, because the paths of its files have one there: the file `a-` comes
// before those of the directory `a`, and `a0` after them. Names are bytes because they may not be valid UTF-8.
import { readdir } from 'node:fs/promises'

interface WalkOptions {
  /** The names of files and directories directly below the directory that are skipped. */
  readonly exclude?: readonly string[] | undefined
  /** A path that an earlier walk has yielded. This walk begins after it. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The rest of a directory that the walk is in. Only the names of these directories are in memory. */
interface Level {
  /** The path relative to the root, which is empty or ends with a slash. */
  readonly path: Buffer
  /** The names of files and directories in reverse order. Those of directories end with a slash. */
  readonly names: Buffer[]
}

const SLASH = Buffer.from('/')

/** Returns `directory/name` with a single slash, as `find` does. */
export function joinPath(directory: string, name: string): string {
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`
}

/**
 * Yields the path of every regular file below `directory`, relative to it. Symbolic links are not followed.
 *
 * @throws the error of the first directory that cannot be read, or the signal's reason if it aborts.
 */
export async function* walkFiles(
  directory: string,
  { exclude = [], after, signal }: WalkOptions = {},
): AsyncGenerator<Buffer, void> {
  const begin = after === undefined ? undefined : Buffer.from(after)
  const root = await levelAt(directory, Buffer.alloc(0))
  const excluded = new Set(exclude.flatMap((name) => [name, `${name}/`]))
  const levels: Level[] = [{ ...root, names: root.names.filter((name) => !excluded.has(name.toString())) }]
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    signal?.throwIfAborted()
    const name = level.names.pop()
    if (name === undefined) {
      levels.pop()
      continue
    }
    const path = Buffer.concat([level.path, name])
    if (begin !== undefined && isBefore(path, begin)) continue
    if (isDirectory(name)) levels.push(await levelAt(directory, path))
    else yield path
  }
}

async function levelAt(directory: string, path: Buffer): Promise<Level> {
  const absolute = Buffer.concat([Buffer.from(directory), SLASH, path])
  const entries = await readdir(absolute, { withFileTypes: true, encoding: 'buffer' })
  const names = entries.flatMap((entry) =>
    entry.isDirectory() ? [Buffer.concat([entry.name, SLASH])] : entry.isFile() ? [entry.name] : [],
  )
  return { path, names: names.sort((a, b) => Buffer.compare(b, a)) }
}

function isDirectory(name: Buffer): boolean {
  return name.at(-1) === SLASH[0]
}

/** Returns whether a walk that begins after a file has nothing to find at this path. */
function isBefore(path: Buffer, begin: Buffer): boolean {
  const isAbove = isDirectory(path) && begin.subarray(0, path.length).equals(path)
  return !isAbove && Buffer.compare(path, begin) <= 0
}
