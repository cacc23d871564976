// The stored form of a worker's status: small, since each worker writes it every two seconds for thousands of slots.
import type { PoolStatus, SlotStatus } from '@bullpen/engine'
import type { WorkerStatus } from '@bullpen/engine/internal'

/** Of a slot: number, state, since; with a task its id, name, start; and its end where it has one. */
type Row = [number, number, number] | [number, number, number, string, number, number, number?]

/** Words are said once, rows name them by their place; times are ms since the worker's start. */
interface StoredWorkers {
  readonly words: readonly string[]
  readonly pools: readonly (readonly Row[])[]
}

type About = Omit<WorkerStatus, 'pools'> & { readonly pools: readonly Omit<PoolStatus, 'slots'>[] }

export interface StoredStatus {
  /** Of the worker and its pools: enough to know whom a command concerns. */
  readonly about: string
  readonly slots: string
}

export function encodeStatus({ pools, ...worker }: WorkerStatus): StoredStatus {
  const words = new Map<string, number>()
  const place = (word: string): number => {
    const known = words.get(word) ?? words.size
    words.set(word, known)
    return known
  }
  const rows = pools.map(({ slots }) => slots.map((slot) => encodeWorker(slot, worker.startedAt, place)))
  const about: About = { ...worker, pools: pools.map(({ slots: _, ...pool }) => pool) }
  return { about: JSON.stringify(about), slots: JSON.stringify({ words: [...words.keys()], pools: rows }) }
}

/** Without `slots` its pools have none. @throws SyntaxError or TypeError for what nobody has encoded. */
export function decodeStatus(about: string, slots?: string): WorkerStatus {
  // As another worker of this version, or of one that tells more, has written it.
  const { pools, ...worker } = JSON.parse(about) as About
  const stored = slots === undefined ? undefined : (JSON.parse(slots) as StoredWorkers)
  const word = (place: number): string => stored?.words[place] ?? ''
  return {
    ...worker,
    pools: pools.map((pool, i) => ({
      ...pool,
      // JSON has no undefined: what is absent is known to be so.
      notReady: pool.notReady,
      slots: (stored?.pools[i] ?? []).map((row) => decodeWorker(row, worker.startedAt, word)),
    })),
  }
}

function encodeWorker(slot: SlotStatus, startedAt: number, place: (word: string) => number): Row {
  const { task } = slot
  const since = slot.since - startedAt
  if (task === undefined) return [slot.slot, place(slot.state), since]
  const { id, fencingToken, timeoutAt } = task
  const row: Row = [slot.slot, place(slot.state), since, id, place(task.task), fencingToken]
  if (timeoutAt !== undefined) row.push(timeoutAt - startedAt)
  return row
}

function decodeWorker(row: Row, startedAt: number, word: (place: number) => string): SlotStatus {
  const [slot, state, since, id, task, start, timeoutAt] = row
  return {
    slot,
    state: word(state) as SlotStatus['state'],
    since: since + startedAt,
    task:
      id === undefined || task === undefined || start === undefined
        ? undefined
        : {
            id,
            task: word(task),
            fencingToken: start,
            ...(timeoutAt !== undefined && { timeoutAt: timeoutAt + startedAt }),
          },
  }
}
