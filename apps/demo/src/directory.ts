// The directory whose files are hashed: its path in the list, and its path for the workers.
import { lstat, realpath } from 'node:fs/promises'
import { joinPath } from '@bullpen/tasks/files'
import { UsageError } from './arguments.ts'

export interface Directory {
  /** The absolute path without symbolic links. The workers may be in another working directory. */
  readonly real: string
  /** Returns a path below the directory as find prints it, which begins with the directory as the user typed it. */
  shown(relative: string): string
}

/** @throws UsageError if `typed` is not a directory. */
export async function openDirectory(typed: string): Promise<Directory> {
  const stats = await lstat(typed).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--dir is '${typed}': ${error.code === 'ENOENT' ? 'no such directory' : error.message}`)
  })
  if (stats.isSymbolicLink()) {
    throw new UsageError(
      `--dir is '${typed}', a symbolic link, which find does not follow; use '${typed}/' to follow it`,
    )
  }
  if (!stats.isDirectory()) throw new UsageError(`--dir is '${typed}'; expected a directory`)
  return { real: await realpath(typed), shown: (relative) => joinPath(typed, relative) }
}
