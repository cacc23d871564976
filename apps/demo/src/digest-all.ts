// Hashes every file as a task over the HTTP API, a bounded number at a time.
import { type Client, TaskEndedError } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'
import { forEachBounded } from '@bullpen/tasks/files'
import { DemoError } from './demo-error.ts'
import type { TreeFile } from './tree.ts'

export interface Digested {
  readonly path: string
  readonly md5: string
  readonly bytes: number
  /** How often a handler was started; more than once if a worker died with the task. */
  readonly starts: number
  /** The workers that ran it. */
  readonly workers: readonly string[]
}

/** @throws DemoError that names the first file that fails. Nothing is enqueued after that. */
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
        workers: task.attempts.map(({ worker }) => worker),
      })
    } catch (error) {
      throw new DemoError(`${JSON.stringify(shown)}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      })
    }
  })
}
