// Kills a worker while it is reading files, as if its machine had failed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, RunHandle } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'
import type { Killed } from './report.ts'

/**
 * The share of the files found so far that must be done. It is large enough that all workers are busy, and small enough to see the
 * recovery.
 */
const KILL_AFTER = 1 / 3

/**
 * With small files, a worker is often idle, and then there is nothing to recover. The demo therefore tries until a worker is reading a
 * file.
 */
const MAX_TRIES = 50
/** How long the other workers' tasks have to end while the victim is stopped, in ms. */
const STOPPED_MS = 100
const BETWEEN_TRIES_MS = 20

interface Killing {
  readonly client: Client
  readonly run: RunHandle
  /** The process ids of the workers that may be killed. */
  readonly victims: readonly number[]
  /** Aborts when the run has ended. */
  readonly signal: AbortSignal
}

/**
 * Kills one of `victims` with SIGKILL while it is reading files. To find such a moment, this function stops one worker after another,
 * looks for digests that do not end, and lets the worker continue if there are none. Resolves with undefined if no worker is running, or if
 * there was no file to read.
 */
export async function killOne({ client, run, victims, signal }: Killing): Promise<Killed | undefined> {
  let stopped: number | undefined
  let tasks = 0
  try {
    await untilBusy(run, signal)
    for (let tries = 0; tries < MAX_TRIES && tasks === 0; tries++) {
      stopped = stopOne(victims, tries)
      if (stopped === undefined) return undefined
      tasks = await stuckDigests(client, signal)
      if (tasks > 0) break
      send(stopped, 'SIGCONT')
      await sleep(BETWEEN_TRIES_MS, undefined, { signal })
    }
  } catch {
    // The run has ended or the API does not respond. A worker is killed anyway, as --kill requests.
  }
  if (signal.aborted && (await hasNoFiles(run))) return undefined
  const pid = [stopped, ...victims].find((each) => each !== undefined && send(each, 'SIGKILL'))
  return pid === undefined ? undefined : { pid, tasks }
}

async function hasNoFiles(run: RunHandle): Promise<boolean> {
  const ended = await run.describe().catch(() => undefined)
  return ended?.source.emitted === 0
}

/** Stops the next of the workers that are running, and returns its process id. */
function stopOne(victims: readonly number[], turn: number): number | undefined {
  const first = turn % victims.length
  return [...victims.slice(first), ...victims.slice(0, first)].find((pid) => send(pid, 'SIGSTOP'))
}

async function untilBusy(run: RunHandle, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { source, stages } = await run.describe({ signal })
    const done = stages[0]?.completed ?? 0
    if (done > 0 && done >= source.emitted * KILL_AFTER) return
    await sleep(BETWEEN_TRIES_MS, undefined, { signal })
  }
}

/**
 * Returns how many digests stay active during the pause. Such a digest is either in the stopped worker or reads a large file.
 */
async function stuckDigests(client: Client, signal: AbortSignal): Promise<number> {
  const before = await activeDigests(client, signal)
  if (before.size === 0) return 0
  await sleep(STOPPED_MS, undefined, { signal })
  return [...(await activeDigests(client, signal))].filter((id) => before.has(id)).length
}

async function activeDigests(client: Client, signal: AbortSignal): Promise<Set<string>> {
  const ids = new Set<string>()
  const active = client.list({ queue: filesDigest.queue, status: 'active', pageSize: 200, signal })
  for await (const { id, task } of active) if (task === filesDigest.name) ids.add(id)
  return ids
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
