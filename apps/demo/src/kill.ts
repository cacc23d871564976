// Kills a worker in the middle of the work, as a machine that fails would.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { filesDigest } from '@bullpen/tasks'

/** How far the work is when it happens: late enough for all workers to be busy, early enough to see the recovery. */
export const KILL_AFTER = 1 / 3

/** A worker that holds no task at that moment shows no recovery; small files leave it idle between two of them. */
const TRIES = 50
/** For tasks that others hold to end, once the victim stands still. */
const STANDING_MS = 100
const BETWEEN_TRIES_MS = 20

/** `host:pid:…`, as results tell the process that ran them. */
const PROCESS_ID = /:(\d+)(?::|$)/

interface Killing {
  readonly client: Client
  /** Process ids. */
  readonly victims: readonly number[]
  /** Those that have taken part so far. */
  readonly processes: ReadonlySet<string>
  /** Aborts when the work is over. */
  readonly signal: AbortSignal
}

/**
 * Kills one of `victims` with SIGKILL: one that has taken part if there is such, and while it holds a task, which takes
 * a few tries of stopping it and looking. Returns its process id, or undefined when none of them runs.
 */
export async function killOne({ client, victims, processes, signal }: Killing): Promise<number | undefined> {
  const busy = new Set([...processes].map((name) => Number(PROCESS_ID.exec(name)?.[1])))
  const inOrder = victims.toSorted((a, b) => Number(busy.has(b)) - Number(busy.has(a)))
  const victim = inOrder.find((pid) => send(pid, 'SIGSTOP'))
  if (victim === undefined) return undefined
  try {
    for (let tries = 1; tries < TRIES && !(await somebodyIsStuck(client, signal)); tries++) {
      send(victim, 'SIGCONT')
      await sleep(BETWEEN_TRIES_MS, undefined, { signal })
      send(victim, 'SIGSTOP')
    }
  } catch {
    // The work is over, or the API does not answer: the kill was promised all the same.
  }
  return send(victim, 'SIGKILL') ? victim : undefined
}

/** A task that is active before and after the pause is held by the worker that stands still, or is a large file. */
async function somebodyIsStuck(client: Client, signal: AbortSignal): Promise<boolean> {
  const before = await active(client, signal)
  if (before.size === 0) return false
  await sleep(STANDING_MS, undefined, { signal })
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
