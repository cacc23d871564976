// Parses the target of a fleet command, which is a queue, a worker, a pool or a slot.
import { type Client, ProblemError } from '@bullpen/client'
import { QUEUE_NAME } from '@bullpen/contract/internal'
import { plain } from '../output/format.ts'
import { UsageError } from './usage-error.ts'

/** A queue targets its whole fleet, a worker targets all of its pools, and both together target a single pool. */
export interface Target {
  readonly queue?: string
  readonly worker?: string
}

/** Returns the target that --queue and --worker specify. @throws UsageError if neither is given. */
export function parseTarget({ queue, worker }: { readonly queue?: string; readonly worker?: string }): Target {
  if (!queue && !worker) throw new UsageError('specify a target: --queue, --worker, or both')
  return { ...(queue ? { queue } : {}), ...(worker ? { worker } : {}) }
}

/** Splits `WORKER/QUEUE/SLOT` at the last two slashes, because a worker's name may contain any character. */
export function parseSlot(text: string): Required<Target> & { readonly slot: number } {
  const [, worker, queue, slot] = /^(.+)\/([^/]+)\/([1-9]\d{0,5})$/s.exec(text) ?? []
  if (worker === undefined || queue === undefined || !QUEUE_NAME.test(queue)) {
    throw new UsageError(`'${text}' is not a slot; expected WORKER/QUEUE/SLOT, as printed by 'bullpen fleet --slots'`)
  }
  return { worker, queue, slot: Number(slot) }
}

/** Replaces a prefix of a worker's name with the full name. If a worker is given, this sends a request to the API. */
export async function resolveWorker<T extends Target>(client: Client, target: T): Promise<T> {
  return target.worker === undefined ? target : { ...target, worker: await workerNamed(client, target.worker) }
}

/** Returns the full name of a live worker. @throws ProblemError `worker_not_found`; UsageError if the prefix is ambiguous. */
async function workerNamed(client: Client, given: string): Promise<string> {
  const { workers } = await client.fleet()
  const names = workers.map(({ worker }) => worker).sort()
  if (names.includes(given)) return given
  // A user may also type the name as the CLI prints it, which is without control characters.
  const printed = names.filter((name) => plain(name) === given)
  const matches =
    printed.length > 0 ? printed : names.filter((name) => name.startsWith(given) || plain(name).startsWith(given))
  const [only] = matches
  const list = (of: readonly string[]) => of.map((name) => plain(name)).join(', ')
  if (matches.length > 1) throw new UsageError(`--worker ${plain(given)} is ambiguous: ${list(matches)}`)
  if (only !== undefined) return only
  const known = names.length === 0 ? 'no workers are running' : `the running workers are ${list(names)}`
  throw new ProblemError({
    code: 'worker_not_found',
    // Only the fleet has been read; the command was not sent.
    outcome: 'refused',
    status: 404,
    detail: `no worker is named ${plain(given)}; ${known}`,
  })
}
