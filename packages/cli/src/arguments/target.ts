// The target of a fleet command: a queue, a worker, one pool, or one slot.
import { type Client, ProblemError } from '@bullpen/client'
import { QUEUE_NAME } from '@bullpen/contract/internal'
import { plain } from '../output/format.ts'
import { UsageError } from './usage-error.ts'

/** A queue alone is its whole fleet, a worker alone all its pools, both together one pool. */
export interface Target {
  readonly queue?: string
  readonly worker?: string
}

/** @throws UsageError when neither is given. */
export function parseTarget({ queue, worker }: { readonly queue?: string; readonly worker?: string }): Target {
  if (!queue && !worker) throw new UsageError('specify a target: --queue, --worker, or both')
  return { ...(queue ? { queue } : {}), ...(worker ? { worker } : {}) }
}

/** `WORKER/QUEUE/SLOT`, split at the last two slashes because a worker's name may contain any character. */
export function parseSlot(text: string): Required<Target> & { readonly slot: number } {
  const [, worker, queue, slot] = /^(.+)\/([^/]+)\/([1-9]\d{0,5})$/s.exec(text) ?? []
  if (worker === undefined || queue === undefined || !QUEUE_NAME.test(queue)) {
    throw new UsageError(`'${text}' is not a slot; expected WORKER/QUEUE/SLOT, as 'bullpen fleet --slots' prints it`)
  }
  return { worker, queue, slot: Number(slot) }
}

/** Replaces a prefix of a worker's name by the whole name. Costs a request if a worker is given. */
export async function resolveWorker<T extends Target>(client: Client, target: T): Promise<T> {
  return target.worker === undefined ? target : { ...target, worker: await workerNamed(client, target.worker) }
}

/** @throws ProblemError `worker_not_found`; UsageError when the prefix is ambiguous. */
async function workerNamed(client: Client, given: string): Promise<string> {
  const { workers } = await client.fleet()
  const names = workers.map(({ worker }) => worker).sort()
  if (names.includes(given)) return given
  // A name can also be given as it is printed, without control characters.
  const printed = names.filter((name) => plain(name) === given)
  const matches =
    printed.length > 0 ? printed : names.filter((name) => name.startsWith(given) || plain(name).startsWith(given))
  const [only] = matches
  const list = (of: readonly string[]) => of.map((name) => plain(name)).join(', ')
  if (matches.length > 1) throw new UsageError(`--worker ${plain(given)} is ambiguous: ${list(matches)}`)
  if (only !== undefined) return only
  const known = names.length === 0 ? 'no workers are running' : `running: ${list(names)}`
  throw new ProblemError({
    code: 'worker_not_found',
    status: 404,
    detail: `no worker is named ${plain(given)}; ${known}`,
  })
}
