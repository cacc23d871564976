// Hashes every file as a task over the HTTP API, with a bounded number of tasks at a time.
import { type Client, TaskEndedError } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'
import { forEachBounded } from '@bullpen/tasks/files'
import { DemoError } from './demo-error.ts'
import type { TreeFile } from './tree.ts'

export interface Digested {
  readonly path: string
  readonly md5: string
  readonly bytes: number
  /** How many times a handler was started, which is more than once if a worker died while it ran the task. */
  readonly starts: number
  /** The workers that ran the task. */
  readonly workers: readonly string[]
}

/** @throws DemoError, which names the first file that fails. After a failure, no more tasks are enqueued. */
export async function digestAll(
  client: Client,
  files: readonly TreeFile[],
  inFlight: number,
  onResult: (digested: Digested) => void,
): Promise<void> {
  await forEachBounded(files, inFlight, async ({ shown, path }, signal) => {
    try {
      const enqueued = await client.enqueue(filesDigest, { path }, { signal })
      const task = await enqueued.waitUntilFinished({ signal })
      if (task.output === undefined) throw new TaskEndedError(task)
      onResult({
        ...task.output,
        path: shown,
        starts: task.fencingToken,
        workers: task.attempts.map(({ worker }) => worker),
      })
    } catch (error) {
      throw new DemoError(`${JSON.stringify(shown)}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      })
    }
  })
}
