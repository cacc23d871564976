// Reads only regular files below the configured roots.
import { createHash } from 'node:crypto'
import { constants, readlinkSync } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { normalize } from 'node:path'
import { BullpenError, TaskError } from '@bullpen/contract'
import { escapeBytes, joinPath, pathText, walkFiles } from '@bullpen/tasks/files'
import { declared, permanent } from './file-error.ts'

export interface FileAccess {
  /**
   * Returns the MD5 digest and the size of the regular file at `path`.
   *
   * @throws TaskError `path_outside_roots`, `not_found`, `not_a_file`, `not_readable` (permanent), `io_error`
   * (retryable), or the signal's reason if it aborts.
   */
  digest(path: string, signal: AbortSignal): Promise<{ md5: string; bytes: number }>
  /**
   * Yields the path of every regular file below `directory`, relative to it, in the order of the paths' bytes. Symbolic links in the
   * directory are not followed.
   *
   * @throws TaskError like {@link digest}, and also `not_a_directory`, and `name_not_utf8` if JSON cannot represent a file's path.
   */
  walk(directory: string, options: WalkOptions): AsyncIterable<string>
}

interface WalkOptions {
  /** The names directly below the directory that are left out. */
  readonly exclude: readonly string[]
  /** A path that an earlier walk has yielded. This walk begins after it. */
  readonly after: string | undefined
  readonly signal: AbortSignal
}

/** With 256 KiB, large files need few reads, and hashing one chunk blocks the event loop for less than a millisecond. */
const CHUNK = 256 * 1_024

/** O_NONBLOCK is set because opening a pipe that has no writer would otherwise block a thread of the thread pool forever. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** @throws BullpenError `invalid_configuration` if a root is not a directory. */
export async function openFileAccess({ roots }: { readonly roots: readonly string[] }): Promise<FileAccess> {
  const real = await Promise.all(roots.map(realRoot))
  const isBelow = (path: string) => real.some((root) => below(root, path))

  /** Returns the path with all links resolved. The error for a path outside the roots does not reveal whether the path exists. */
  async function resolve(path: string): Promise<string> {
    const outside = () =>
      permanent(
        'path_outside_roots',
        `${JSON.stringify(path)} is not below any of this worker's ${roots.length} roots (BULLPEN_WORKER_FILES_ROOTS)`,
      )
    try {
      const resolved = await realpath(path)
      if (!isBelow(resolved)) throw outside()
      return resolved
    } catch (error) {
      if (error instanceof TaskError) throw error
      throw [...roots, ...real].some((root) => below(root, normalize(path))) ? declared(error, path) : outside()
    }
  }

  return {
    async digest(path, signal) {
      const resolved = await resolve(path)
      let handle: FileHandle | undefined
      try {
        handle = await open(resolved, FLAGS)
        const { size } = await regularFile(handle, path)
        // A directory in the path may have become a link since the path was resolved, so the opened file is checked again.
        if (!isBelow(openedPath(handle) ?? resolved))
          throw permanent('path_outside_roots', `${path} is no longer below a root`)
        return await md5(handle, size, signal)
      } catch (error) {
        throw signal.aborted ? signal.reason : declared(error, path)
      } finally {
        await handle?.close()
      }
    },

    async *walk(directory, { signal, ...options }) {
      const resolved = await resolve(directory)
      try {
        if (!(await lstat(resolved)).isDirectory()) {
          throw permanent('not_a_directory', `${JSON.stringify(directory)} is not a directory`)
        }
        for await (const name of walkFiles(resolved, { ...options, signal })) yield textOf(name, directory)
      } catch (error) {
        throw signal.aborted ? signal.reason : declared(error, directory)
      }
    },
  }
}

/** Paths are sent as JSON, so one that is not UTF-8 is rejected rather than changed. */
function textOf(name: Buffer, directory: string): string {
  const text = pathText(name)
  if (text !== undefined) return text
  throw permanent('name_not_utf8', `${joinPath(directory, escapeBytes(name))} has a name that is not UTF-8; rename it`)
}

async function realRoot(root: string): Promise<string> {
  const wrong = (cause?: unknown) =>
    new BullpenError(
      'invalid_configuration',
      `BULLPEN_WORKER_FILES_ROOTS: ${JSON.stringify(root)} is not a readable directory`,
      { cause },
    )
  const real = await realpath(root).catch((error) => Promise.reject(wrong(error)))
  if (!(await lstat(real)).isDirectory()) throw wrong()
  return real
}

function below(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`)
}

async function regularFile(handle: FileHandle, path: string) {
  const stat = await handle.stat()
  if (!stat.isFile()) throw permanent('not_a_file', `${JSON.stringify(path)} is not a regular file`)
  return stat
}

/**
 * Works only on Linux. Elsewhere it returns undefined, and the race between resolving and opening remains. Reading procfs never
 * waits for a disk.
 */
function openedPath(handle: FileHandle): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${handle.fd}`)
  } catch {
    return undefined
  }
}

async function md5(handle: FileHandle, size: number, signal: AbortSignal): Promise<{ md5: string; bytes: number }> {
  const hash = createHash('md5')
  const buffer = Buffer.allocUnsafe(Math.min(Math.max(size, 1), CHUNK))
  let bytes = 0
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null)
    if (bytesRead === 0) return { md5: hash.digest('hex'), bytes }
    hash.update(buffer.subarray(0, bytesRead))
    bytes += bytesRead
  }
}
