// Hashes every file over the HTTP API, a bounded number at a time: MD5All of the seeds.
import { type Client, TaskEndedError } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'
import { forEachBounded } from '@bullpen/tasks/files'
import { DemoError } from './demo-error.ts'
import type { TreeFile } from './tree.ts'

export interface Digested {
  readonly path: string
  readonly md5: string
  readonly bytes: number
  /** How often a worker began it; more than once when one died with it. */
  readonly starts: number
  /** The worker processes that ran it. */
  readonly processes: readonly string[]
}

/** @throws DemoError for the first file that fails, naming it; nothing is enqueued after that. */
export async function digestAll(
  client: Client,
  files: readonly TreeFile[],
  inFlight: number,
  onResult: (digested: Digested) => void,
): Promise<void> {
  await forEachBounded(files, inFlight, async ({ shown, path }, signal) => {
    try {
      const { id } = await client.enqueue(filesDigest, { path }, { signal })
      const task = await client.waitUntilFinished(filesDigest, id, { signal })
      if (task.output === undefined) throw new TaskEndedError(task)
      onResult({
        ...task.output,
        path: shown,
        starts: task.fencingToken,
        processes: task.attempts.map((end) => end.worker),
      })
    } catch (error) {
      throw new DemoError(`${JSON.stringify(shown)}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      })
    }
  })
}
