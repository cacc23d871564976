// Kills a worker while it is working, as if its machine had failed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'

/**
 * The share of results after which the worker is killed. It is late enough that all workers are busy, and early enough to see the
 * recovery.
 */
export const KILL_AFTER = 1 / 3

/**
 * With small files, a worker is often idle, and then there is nothing to recover. The demo therefore tries until the worker is
 * running a task.
 */
const MAX_TRIES = 50
/** How long the other workers' tasks have to end while the victim is stopped, in ms. */
const STOPPED_MS = 100
const BETWEEN_TRIES_MS = 20

/** The name of a worker has the form `host:pid:…`. */
const PROCESS_ID = /:(\d+)(?::|$)/

interface Killing {
  readonly client: Client
  /** The process ids of the workers that may be killed. */
  readonly victims: readonly number[]
  /** The names of the workers that have taken part so far. */
  readonly workers: ReadonlySet<string>
  /** Aborts when the work has ended. */
  readonly signal: AbortSignal
}

/**
 * Kills one of `victims` with SIGKILL while it is running a task, preferably one that has taken part. To find such a moment, this
 * function stops the worker, checks for a task, and lets the worker continue if there is none. Returns the process id of the
 * worker, or undefined if none of them is running.
 */
export async function killOne({ client, victims, workers, signal }: Killing): Promise<number | undefined> {
  const busy = new Set([...workers].map((name) => Number(PROCESS_ID.exec(name)?.[1])))
  const inOrder = victims.toSorted((a, b) => Number(busy.has(b)) - Number(busy.has(a)))
  const victim = inOrder.find((pid) => send(pid, 'SIGSTOP'))
  if (victim === undefined) return undefined
  try {
    for (let tries = 1; tries < MAX_TRIES && !(await aTaskIsStuck(client, signal)); tries++) {
      send(victim, 'SIGCONT')
      await sleep(BETWEEN_TRIES_MS, undefined, { signal })
      send(victim, 'SIGSTOP')
    }
  } catch {
    // The work has ended or the API does not respond. The worker is killed anyway, as --kill requests.
  }
  return send(victim, 'SIGKILL') ? victim : undefined
}

/**
 * Returns whether a task stays active during the pause. Such a task is either running on the stopped worker or processing a large
 * file.
 */
async function aTaskIsStuck(client: Client, signal: AbortSignal): Promise<boolean> {
  const before = await active(client, signal)
  if (before.size === 0) return false
  await sleep(STOPPED_MS, undefined, { signal })
  return [...(await active(client, signal))].some((id) => before.has(id))
}

async function active(client: Client, signal: AbortSignal): Promise<Set<string>> {
  const ids = new Set<string>()
  for await (const { id } of client.list({ queue: filesDigest.queue, status: 'active', pageSize: 200, signal }))
    ids.add(id)
  return ids
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
