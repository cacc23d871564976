// Handles files.digest-tree, which digests a whole directory in one task with bounded concurrency.
import { createHash } from 'node:crypto'
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { filesDigestTree } from '@bullpen/tasks'
import { escapeBytes, type FileDigest, forEachBounded, joinPath, md5Lines, pathText } from '@bullpen/tasks/files'
import { permanent } from '../resources/file-error.ts'
import type { WorkerResources } from '../resources/index.ts'

/** How many files are read at the same time. This bounds open files and memory, regardless of the size of the directory. */
const CONCURRENCY = 20

/** The minimum interval between progress reports, in ms. Reports are limited because each one takes a round trip to Redis. */
const REPORT_INTERVAL_MS = 500

export default defineHandler(
  filesDigestTree,
  import.meta.url,
  async (context: TaskContext<typeof filesDigestTree, WorkerResources>) => {
    const { input, resources, signal } = context
    const listing = await resources.files.list(input.path, signal)
    const names = listing.files.map((name) => textOf(name, input.path))
    const digests: FileDigest[] = []
    let bytes = 0
    let reportedAt = Date.now()
    const digest = async (name: string, stop: AbortSignal) => {
      const path = joinPath(input.path, name)
      const file = await resources.files.digest(path, stop)
      digests.push({ path, md5: file.md5 })
      bytes += file.bytes
      if (Date.now() - reportedAt < REPORT_INTERVAL_MS) return
      reportedAt = Date.now()
      // If a report fails, the progress is only outdated, which is no reason to fail the task.
      await context
        .progress(digests.length / names.length, `${digests.length} of ${names.length} files`)
        .catch((err) => context.log.warn({ err }, 'progress not stored'))
    }
    await forEachBounded(names, CONCURRENCY, digest, signal)
    // This error is checked after all results, because a failed digest reveals more about the cause than an interrupted walk.
    if (listing.error !== undefined) throw listing.error
    const list = createHash('md5')
    for (const line of md5Lines(digests)) list.update(line)
    return { files: digests.length, bytes, md5: list.digest('hex') }
  },
)

/** Names are sent as JSON, so a name that is not UTF-8 is rejected rather than changed. */
function textOf(name: Buffer, directory: string): string {
  const text = pathText(name)
  if (text !== undefined) return text
  throw permanent('name_not_utf8', `${joinPath(directory, escapeBytes(name))} has a name that is not UTF-8`)
}
