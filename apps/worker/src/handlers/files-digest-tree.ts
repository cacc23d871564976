// Handles files.digest-tree: MD5All of the seeds, bounded, in one task.
import { createHash } from 'node:crypto'
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { filesDigestTree } from '@bullpen/tasks'
import { escapeBytes, type FileDigest, forEachBounded, joinPath, md5Lines, pathText } from '@bullpen/tasks/files'
import { permanent } from '../resources/file-error.ts'
import type { WorkerResources } from '../resources/index.ts'

/** The seed's bound: it limits open files and memory, whatever the tree. */
const DIGESTERS = 20

/** How often progress is stored: each time is a round trip to Redis. */
const REPORT_EVERY_MS = 500

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
      if (Date.now() - reportedAt < REPORT_EVERY_MS) return
      reportedAt = Date.now()
      // A look-up that shows an old number is no reason to begin again.
      await context
        .progress(digests.length / names.length, `${digests.length} of ${names.length} files`)
        .catch((err) => context.log.warn({ err }, 'progress was not stored'))
    }
    await forEachBounded(names, DIGESTERS, digest, signal)
    // As in the seed, after all results: a failed digest is nearer to the cause than a walk that broke off.
    if (listing.error !== undefined) throw listing.error
    const list = createHash('md5')
    for (const line of md5Lines(digests)) list.update(line)
    return { files: digests.length, bytes, md5: list.digest('hex') }
  },
)

/** Names travel as JSON in errors and lists, so one that is not UTF-8 is refused rather than changed. */
function textOf(name: Buffer, directory: string): string {
  const text = pathText(name)
  if (text !== undefined) return text
  throw permanent('name_not_utf8', `${joinPath(directory, escapeBytes(name))} is not named in UTF-8`)
}
