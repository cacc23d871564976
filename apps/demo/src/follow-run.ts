// Follows a run until it has ended: its stages, and the workers that are seen reading files.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, RunHandle } from '@bullpen/client'
import type { RunView } from '@bullpen/contract'
import { filesDigest } from '@bullpen/tasks'

/** What is known of a run that has not ended. */
export interface RunProgress {
  /** Undefined until the run has been looked up for the first time. */
  readonly run: RunView | undefined
  /** The workers that were seen reading files. Workers report what they run every few seconds, so quick ones can be missing. */
  readonly workers: ReadonlySet<string>
}

export interface FollowedRun {
  progress(): RunProgress
  readonly ended: Promise<RunView>
}

const LOOK_EVERY_MS = 200
const WORKERS_EVERY_MS = 1_000

export function followRun(client: Client, handle: RunHandle): FollowedRun {
  const workers = new Set<string>()
  let run: RunView | undefined
  const over = new AbortController()

  async function untilEnded(): Promise<RunView> {
    try {
      for (;;) {
        run = await handle.describe()
        if (run.state === 'ended') return run
        await sleep(LOOK_EVERY_MS)
      }
    } finally {
      over.abort()
    }
  }

  async function lookForWorkers(): Promise<void> {
    const { signal } = over
    for (;;) {
      for (const { worker, task } of await client.slots({ queue: filesDigest.queue, signal })) {
        if (task?.task === filesDigest.name) workers.add(worker)
      }
      await sleep(WORKERS_EVERY_MS, undefined, { signal })
    }
  }

  // Without the workers, the progress is incomplete, which is no reason to stop.
  lookForWorkers().catch(() => {})
  const ended = untilEnded()
  // The error is thrown where the end is awaited.
  ended.catch(() => {})
  return { progress: () => ({ run, workers }), ended }
}
