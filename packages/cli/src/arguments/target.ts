// What a command is for: a queue, a process, a pool or a worker, as the command line names it.
import { type Client, ProblemError } from '@bullpen/client'
import { QUEUE_NAME } from '@bullpen/contract'
import { plain } from '../output/format.ts'
import { UsageError } from './usage-error.ts'

export interface Target {
  readonly queue?: string
  readonly process?: string
}

/** @throws UsageError when it names nobody. */
export function targetIn({ queue, process }: { readonly queue?: string; readonly process?: string }): Target {
  if (!queue && !process) throw new UsageError('it is not said for whom: --queue QUEUE, --process PROCESS, or both')
  return { ...(queue ? { queue } : {}), ...(process ? { process } : {}) }
}

/** `PROCESS/QUEUE/NUMBER`, read from its end: a process's name may hold anything. */
export function workerIn(text: string): Required<Target> & { readonly worker: number } {
  const [, process, queue, worker] = /^(.+)\/([^/]+)\/([1-9]\d{0,5})$/s.exec(text) ?? []
  if (process === undefined || queue === undefined || !QUEUE_NAME.test(queue)) {
    throw new UsageError(`'${text}' is no worker: it is PROCESS/QUEUE/NUMBER, as 'bullpen fleet --workers' shows it`)
  }
  return { process, queue, worker: Number(worker) }
}

/** With the whole name of its process. Asks the API where one is named. */
export async function resolved<T extends Target>(client: Client, target: T): Promise<T> {
  return target.process === undefined ? target : { ...target, process: await processNamed(client, target.process) }
}

/** @throws ProblemError `process_not_found`; UsageError when several begin so. */
async function processNamed(client: Client, given: string): Promise<string> {
  const { processes } = await client.fleet()
  const names = processes.map(({ process }) => process)
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
    code: 'process_not_found',
    status: 404,
    detail: `no process is named ${plain(given)}; ${known}`,
  })
}
