// Finds the files to hash, with the path to print and the path for the workers.
import { lstat, realpath } from 'node:fs/promises'
import { escapeBytes, joinPath, listFiles, pathText } from '@bullpen/tasks/files'
import { UsageError } from './arguments.ts'
import { DemoError } from './demo-error.ts'

export interface TreeFile {
  /** The path as find prints it, for the list. */
  readonly shown: string
  /** The absolute path without symbolic links, for the workers. */
  readonly path: string
}

export interface Tree {
  readonly files: readonly TreeFile[]
  /** The error that ended the walk early. Check it only after all results, because a result's error takes precedence. */
  readonly error: unknown
}

/**
 * @throws UsageError if `directory` is not a directory, and DemoError if the name of a file is not UTF-8, because JSON cannot
 * represent such a name and the list would be incomplete.
 */
export async function findFiles(directory: string, exclude: ReadonlySet<string>): Promise<Tree> {
  await checkDirectory(directory)
  const real = await realpath(directory)
  const { files, error } = await listFiles(real, { exclude })
  return { error, files: files.map((name) => fileNamed(name, directory, real)) }
}

async function checkDirectory(directory: string): Promise<void> {
  const stats = await lstat(directory).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--dir is '${directory}': ${error.code === 'ENOENT' ? 'no such directory' : error.message}`)
  })
  if (stats.isSymbolicLink()) {
    throw new UsageError(
      `--dir is '${directory}', a symbolic link, which find does not follow; use '${directory}/' to follow it`,
    )
  }
  if (!stats.isDirectory()) throw new UsageError(`--dir is '${directory}'; expected a directory`)
}

function fileNamed(name: Buffer, directory: string, real: string): TreeFile {
  const text = pathText(name)
  if (text === undefined) {
    throw new DemoError(`${joinPath(directory, escapeBytes(name))}: the name is not UTF-8, so JSON cannot represent it`)
  }
  return { shown: joinPath(directory, text), path: joinPath(real, text) }
}
