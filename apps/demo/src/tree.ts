// The files to hash: what find would print, and where the workers find it.
import { lstat, realpath } from 'node:fs/promises'
import { escapeBytes, joinPath, listFiles, pathText } from '@bullpen/tasks/files'
import { UsageError } from './arguments.ts'
import { DemoError } from './demo-error.ts'

export interface TreeFile {
  /** As find prints it: what the list says. */
  readonly shown: string
  /** Absolute, without links: what the workers are asked for. */
  readonly path: string
}

export interface Tree {
  readonly files: readonly TreeFile[]
  /** The walk's own error, or undefined; to be looked at after all results, as in Go's MD5All. */
  readonly error: unknown
}

/**
 * @throws UsageError when `directory` is not one; DemoError when a name can't be carried by JSON, since then no list
 * could be right.
 */
export async function findFiles(directory: string, exclude: ReadonlySet<string>): Promise<Tree> {
  await checkDirectory(directory)
  const real = await realpath(directory)
  const { files, error } = await listFiles(real, { exclude })
  return { error, files: files.map((name) => fileNamed(name, directory, real)) }
}

async function checkDirectory(directory: string): Promise<void> {
  const stat = await lstat(directory).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`--dir ${directory}: ${error.code === 'ENOENT' ? 'does not exist' : error.message}`)
  })
  if (stat.isSymbolicLink()) {
    throw new UsageError(
      `--dir ${directory}: is a symbolic link, which find does not follow; '${directory}/' follows it`,
    )
  }
  if (!stat.isDirectory()) throw new UsageError(`--dir ${directory}: is not a directory`)
}

function fileNamed(name: Buffer, directory: string, real: string): TreeFile {
  const text = pathText(name)
  if (text === undefined) {
    throw new DemoError(`${joinPath(directory, escapeBytes(name))}: the name is not UTF-8, so JSON can't carry it`)
  }
  return { shown: joinPath(directory, text), path: joinPath(real, text) }
}
