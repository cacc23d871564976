// Encodes and decodes a worker's status. The stored form is compact because each worker writes its status every two seconds, and
// a worker may have thousands of slots.
import type { PoolStatus, SlotStatus } from '@bullpen/engine'
import type { WorkerStatus } from '@bullpen/engine/internal'

/**
 * A slot's number, its state and when it entered that state. If the slot has a task, the task's id, name and fencing token
 * follow, and then its timeout if it has one.
 */
type Row = [number, number, number] | [number, number, number, string, number, number, number?]

/** Each state and task name is stored once in `strings`, and rows hold its index. Times are in ms since the worker's start. */
interface StoredSlots {
  readonly strings: readonly string[]
  readonly pools: readonly (readonly Row[])[]
}

type StatusWithoutSlots = Omit<WorkerStatus, 'pools'> & { readonly pools: readonly Omit<PoolStatus, 'slots'>[] }

export interface StoredStatus {
  /** The worker and its pools without slots, as JSON. */
  readonly status: string
  /** {@link StoredSlots} as JSON. */
  readonly slots: string
}

export function encodeStatus({ pools, ...worker }: WorkerStatus): StoredStatus {
  const strings = new Map<string, number>()
  const indexOf = (text: string): number => {
    const index = strings.get(text) ?? strings.size
    strings.set(text, index)
    return index
  }
  const rows = pools.map(({ slots }) => slots.map((slot) => encodeSlot(slot, worker.startedAt, indexOf)))
  const status: StatusWithoutSlots = { ...worker, pools: pools.map(({ slots: _, ...pool }) => pool) }
  return { status: JSON.stringify(status), slots: JSON.stringify({ strings: [...strings.keys()], pools: rows }) }
}

/**
 * Decodes a status. If `slots` is omitted, the decoded pools have no slots.
 *
 * @throws SyntaxError or TypeError if a string was not encoded by {@link encodeStatus}.
 */
export function decodeStatus(status: string, slots?: string): WorkerStatus {
  const { pools, ...worker } = JSON.parse(status) as StatusWithoutSlots
  const stored = slots === undefined ? undefined : (JSON.parse(slots) as StoredSlots)
  const stringAt = (index: number): string => stored?.strings[index] ?? ''
  return {
    ...worker,
    pools: pools.map((pool, i) => ({
      ...pool,
      // JSON omits undefined fields.
      notReady: pool.notReady,
      slots: (stored?.pools[i] ?? []).map((row) => decodeSlot(row, worker.startedAt, stringAt)),
    })),
  }
}

function encodeSlot(slot: SlotStatus, startedAt: number, indexOf: (text: string) => number): Row {
  const { task } = slot
  const since = slot.since - startedAt
  if (task === undefined) return [slot.slot, indexOf(slot.state), since]
  const { id, fencingToken, timeoutAt } = task
  const row: Row = [slot.slot, indexOf(slot.state), since, id, indexOf(task.task), fencingToken]
  if (timeoutAt !== undefined) row.push(timeoutAt - startedAt)
  return row
}

function decodeSlot(row: Row, startedAt: number, stringAt: (index: number) => string): SlotStatus {
  const [slot, state, since, id, task, fencingToken, timeoutAt] = row
  return {
    slot,
    state: stringAt(state) as SlotStatus['state'],
    since: since + startedAt,
    task:
      id === undefined || task === undefined || fencingToken === undefined
        ? undefined
        : {
            id,
            task: stringAt(task),
            fencingToken,
            ...(timeoutAt !== undefined && { timeoutAt: timeoutAt + startedAt }),
          },
  }
}
