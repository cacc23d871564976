// What a command is for: a queue, a worker, a pool or a slot, as the command line names it.
import { type Client, ProblemError } from '@bullpen/client'
import { QUEUE_NAME } from '@bullpen/contract/internal'
import { plain } from '../output/format.ts'
import { UsageError } from './usage-error.ts'

export interface Target {
  readonly queue?: string
  readonly worker?: string
}

/** @throws UsageError when it names nobody. */
export function targetIn({ queue, worker }: { readonly queue?: string; readonly worker?: string }): Target {
  if (!queue && !worker) throw new UsageError('it is not said for whom: --queue QUEUE, --worker WORKER, or both')
  return { ...(queue ? { queue } : {}), ...(worker ? { worker } : {}) }
}

/** `WORKER/QUEUE/SLOT`, read from its end: a worker's name may hold anything. */
export function workerIn(text: string): Required<Target> & { readonly slot: number } {
  const [, worker, queue, slot] = /^(.+)\/([^/]+)\/([1-9]\d{0,5})$/s.exec(text) ?? []
  if (worker === undefined || queue === undefined || !QUEUE_NAME.test(queue)) {
    throw new UsageError(`'${text}' is no slot: it is WORKER/QUEUE/SLOT, as 'bullpen fleet --slots' shows it`)
  }
  return { worker, queue, slot: Number(slot) }
}

/** With the whole name of its worker. Asks the API where one is named. */
export async function resolved<T extends Target>(client: Client, target: T): Promise<T> {
  return target.worker === undefined ? target : { ...target, worker: await processNamed(client, target.worker) }
}

/** @throws ProblemError `worker_not_found`; UsageError when several begin so. */
async function processNamed(client: Client, given: string): Promise<string> {
  const { workers } = await client.fleet()
  const names = workers.map(({ worker }) => worker)
  if (names.includes(given)) return given
  // As they are shown, too: what a terminal would obey is not.
  const shown = names.filter((name) => plain(name) === given)
  const fitting =
    shown.length > 0 ? shown : names.filter((name) => name.startsWith(given) || plain(name).startsWith(given))
  const [only] = fitting
  if (fitting.length > 1)
    throw new UsageError(`'${given}' may be any of ${fitting.map((name) => plain(name)).join(', ')}`)
  if (only !== undefined) return only
  const known = names.length === 0 ? 'there is none' : `there are ${names.map((name) => plain(name)).join(', ')}`
  throw new ProblemError({
    code: 'worker_not_found',
    status: 404,
    detail: `no worker is named ${plain(given)}; ${known}`,
  })
}
