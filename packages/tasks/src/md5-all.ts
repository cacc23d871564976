// MD5All: three pipelines that compute the MD5 of every file below a directory, and differ in how many files are read at once.
// The idea is from "Go Concurrency Patterns: Pipelines and cancellation" (go.dev/blog/pipelines).
import { definePipeline } from '@bullpen/contract'
import { filesDigest } from './files-digest.ts'
import { filesSortByPath } from './files-sort-by-path.ts'
import { filesWalk } from './files-walk.ts'

/** The maximum size of all digests, as JSON. A digest takes 150 bytes and its path, so this is enough for about 300,000 files. */
const MAX_BYTES = 64 * 2 ** 20

/** The bound of the article. It limits open files, memory and the load on the disks, however many workers there are. */
const DIGESTERS = 20

/** The largest number of unfinished tasks that a stage may have. */
const UNBOUNDED = 1_000

function md5All(name: string, concurrency: number) {
  return definePipeline(name)
    .source(filesWalk)
    .map(filesDigest, { concurrency, buffer: Math.max(concurrency, DIGESTERS) })
    .reduce(filesSortByPath, { maxBytes: MAX_BYTES })
}

/** Reads one file at a time. */
export const md5AllSerial = md5All('md5-all-serial', 1)

/** Reads as many files at a time as the workers have slots, up to 1,000. */
export const md5AllParallel = md5All('md5-all-parallel', UNBOUNDED)

/** Reads at most 20 files at a time, on all workers together. */
export const md5AllBounded = md5All('md5-all-bounded', DIGESTERS)
