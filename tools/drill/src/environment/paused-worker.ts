// Pauses a worker at a moment that a fault needs.
import { holdsWithin } from '../holds-within.ts'
import type { WorkerProcess } from './fleet.ts'

export interface PausedWorker<T> {
  readonly worker: WorkerProcess
  /** What `look` has found while the worker was paused. Undefined if it found nothing in time. */
  readonly found: T | undefined
}

/**
 * Pauses one worker after another (SIGSTOP) until `look` finds something while a worker is paused. That worker stays paused. After
 * `withinMs`, the last one stays paused in any case.
 *
 * @throws Error if there was no worker.
 */
export async function pauseWhen<T>(
  choose: () => Promise<WorkerProcess | undefined>,
  look: (paused: WorkerProcess) => T | undefined,
  withinMs: number,
): Promise<PausedWorker<T>> {
  let worker: WorkerProcess | undefined
  let found: T | undefined
  await holdsWithin(withinMs, async () => {
    worker?.resume()
    worker = await choose()
    worker?.pause()
    found = worker && look(worker)
    return found !== undefined
  })
  if (worker === undefined) throw new Error(`no worker was running within ${withinMs} ms, so none could be paused`)
  return { worker, found }
}
