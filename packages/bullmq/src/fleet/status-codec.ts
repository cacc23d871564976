// The stored form of a process's status: small, since each process writes it every two seconds for thousands of workers.
import type { PoolStatus, ProcessStatus, WorkerStatus } from '@bullpen/engine'

/** Of a worker: number, state, since; with a task its id, name, start; and its end where it has one. */
type Row = [number, number, number] | [number, number, number, string, number, number, number?]

/** Words are said once, rows name them by their place; times are ms since the process's start. */
interface StoredWorkers {
  readonly words: readonly string[]
  readonly pools: readonly (readonly Row[])[]
}

type About = Omit<ProcessStatus, 'pools'> & { readonly pools: readonly Omit<PoolStatus, 'workers'>[] }

export interface StoredStatus {
  /** Of the process and its pools: enough to know whom a command concerns. */
  readonly about: string
  readonly workers: string
}

export function encodeStatus({ pools, ...process }: ProcessStatus): StoredStatus {
  const words = new Map<string, number>()
  const place = (word: string): number => {
    const known = words.get(word) ?? words.size
    words.set(word, known)
    return known
  }
  const rows = pools.map(({ workers }) => workers.map((worker) => encodeWorker(worker, process.startedAt, place)))
  const about: About = { ...process, pools: pools.map(({ workers: _, ...pool }) => pool) }
  return { about: JSON.stringify(about), workers: JSON.stringify({ words: [...words.keys()], pools: rows }) }
}

/** Without `workers` its pools have none. @throws SyntaxError or TypeError for what nobody has encoded. */
export function decodeStatus(about: string, workers?: string): ProcessStatus {
  // As another process of this version, or of one that tells more, has written it.
  const { pools, ...process } = JSON.parse(about) as About
  const stored = workers === undefined ? undefined : (JSON.parse(workers) as StoredWorkers)
  const word = (place: number): string => stored?.words[place] ?? ''
  return {
    ...process,
    pools: pools.map((pool, i) => ({
      ...pool,
      // JSON has no undefined: what is absent is known to be so.
      notReady: pool.notReady,
      workers: (stored?.pools[i] ?? []).map((row) => decodeWorker(row, process.startedAt, word)),
    })),
  }
}

function encodeWorker(worker: WorkerStatus, startedAt: number, place: (word: string) => number): Row {
  const { task } = worker
  const since = worker.since - startedAt
  if (task === undefined) return [worker.worker, place(worker.state), since]
  const { id, start, endsBy } = task
  const row: Row = [worker.worker, place(worker.state), since, id, place(task.task), start]
  if (endsBy !== undefined) row.push(endsBy - startedAt)
  return row
}

function decodeWorker(row: Row, startedAt: number, word: (place: number) => string): WorkerStatus {
  const [worker, state, since, id, task, start, endsBy] = row
  return {
    worker,
    state: word(state) as WorkerStatus['state'],
    since: since + startedAt,
    task:
      id === undefined || task === undefined || start === undefined
        ? undefined
        : { id, task: word(task), start, ...(endsBy !== undefined && { endsBy: endsBy + startedAt }) },
  }
}
