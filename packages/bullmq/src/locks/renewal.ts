// Renews one consumer's locks at a fixed interval, as long as the main thread's event loop is turning.
import { renewLockScript } from '../scripts/jobs/renew-locks.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import type { LockGroup } from './lock-messages.ts'
import { machineMs, msBetween } from './machine-clock.ts'
import { SharedLockTable, type SharedTable, type TableEntry } from './shared-lock-table.ts'

/** How many locks one script renews, which takes Redis about half a millisecond. */
const BATCH_SIZE = 250

type Lock = Pick<TableEntry, 'id' | 'token'>

/** Renews the given locks. Returns the locks that this process no longer holds. */
export async function renewLocks<L extends Lock>(
  redis: Commander,
  { base, lockMs }: Pick<LockGroup, 'base' | 'lockMs'>,
  locks: readonly L[],
): Promise<readonly L[]> {
  const pairs = locks.flatMap(({ id, token }) => [id, token])
  const lost = await runScript(redis, renewLockScript, { stalled: `${base}stalled` }, { base, lockMs }, pairs)
  return lost.flatMap((number) => locks[number - 1] ?? [])
}

export interface Renewal {
  addTable(table: SharedTable): void
  end(): void
}

/** The state of a connection that several groups share. Times are the machine clock's. */
interface Liveness {
  answeredAt: number
  pingedAt: number
  /** How many times the connection was closed because Redis did not respond. */
  replaced: number
}

const liveness = new WeakMap<object, Liveness>()

/**
 * Starts renewing a group's locks. `redis` must reject commands that it can't send immediately, because a late renewal is
 * useless.
 */
export function startRenewal(redis: Commander, group: LockGroup, now: () => number = machineMs): Renewal {
  const lastTurn = new Int32Array(group.lastTurn)
  const tables = group.tables.map((table) => new SharedLockTable(table))
  /** Locks younger than this are left to the next round, because most of their tasks will have ended by then. */
  const youngMs = group.renewalMs / 4
  const connection = liveness.get(redis) ?? { answeredAt: now(), pingedAt: now(), replaced: 0 }
  liveness.set(redis, connection)
  /** The number of the connection on which this group's commands are in flight, or undefined if none are. */
  let busyOn: number | undefined

  const dueLocks = (table: SharedLockTable): TableEntry[] => {
    const due: TableEntry[] = []
    for (let slot = 0; slot < table.slots; slot++) {
      if (!table.isTaken(slot) || msBetween(table.since(slot), now()) < youngMs) continue
      const entry = table.read(slot)
      if (entry !== undefined) due.push(entry)
    }
    return due
  }
  const renew = async (table: SharedLockTable, entries: readonly TableEntry[]): Promise<void> => {
    const sentAt = now()
    const lost = new Set(await renewLocks(redis, group, entries))
    for (const entry of entries) {
      if (lost.has(entry)) table.markLost(entry)
      else table.markRenewed(entry, sentAt)
    }
  }
  const renewAll = async (): Promise<void> => {
    const batches = tables.flatMap((table) => {
      const due = dueLocks(table)
      const parts = Array.from({ length: Math.ceil(due.length / BATCH_SIZE) }, (_, part) =>
        due.slice(part * BATCH_SIZE, (part + 1) * BATCH_SIZE),
      )
      return parts.map((part) => renew(table, part))
    })
    if (batches.length === 0) return pingIfSilent()
    await Promise.all(batches)
    connection.answeredAt = now()
  }
  /**
   * Pings Redis if there is nothing to renew, to notice that Redis does not respond before a lock depends on it. One ping per
   * half a lock's duration is enough for all groups.
   */
  const pingIfSilent = async (): Promise<void> => {
    if (msBetween(connection.answeredAt, now()) < group.lockMs / 2) return
    if (msBetween(connection.pingedAt, now()) < group.renewalMs) return
    connection.pingedAt = now()
    await redis.ping()
    connection.answeredAt = now()
  }
  const isMainThreadStalled = (): boolean =>
    group.eventLoopStallLimitMs !== undefined &&
    msBetween(Atomics.load(lastTurn, 0), now()) > group.eventLoopStallLimitMs

  const onInterval = (): void => {
    if (isMainThreadStalled()) return
    // A dead connection may take minutes to fail by itself, whereas a new connection works as soon as the network does.
    if (msBetween(connection.answeredAt, now()) > group.lockMs) {
      connection.answeredAt = now()
      connection.replaced++
      redis.disconnect(true)
    }
    // Commands that were in flight on an earlier connection never settle, because ioredis drops them when it reconnects.
    if (busyOn === connection.replaced) return
    const sentOn = connection.replaced
    busyOn = sentOn
    // An error needs no handling here: the main thread notices locks that are too old, and its own connection reports the outage.
    renewAll()
      .catch(() => {})
      .finally(() => {
        if (busyOn === sentOn) busyOn = undefined
      })
  }
  const timer = setInterval(onInterval, group.renewalMs)
  return { addTable: (table) => tables.push(new SharedLockTable(table)), end: () => clearInterval(timer) }
}
