// Renews one consumer's locks at a fixed interval while the main thread's event loop is not blocked.
import { type Commander, runnerOn, type ScriptRunner } from '../scripts/script.ts'
import { renewLocksScript } from '../store/scripts.ts'
import type { LockGroup } from './lock-messages.ts'
import { machineMs, msBetween } from './machine-clock.ts'
import { SharedLockTable, type SharedTable, type TableEntry } from './shared-lock-table.ts'

/** How many locks one script renews, which takes Redis about half a millisecond. */
const BATCH_SIZE = 250

export type Lock = Pick<TableEntry, 'id' | 'token'>

/** Renews the given locks. Returns the locks that this process no longer holds. */
export async function renewLocks<L extends Lock>(
  run: ScriptRunner,
  { base, lockMs }: Pick<LockGroup, 'base' | 'lockMs'>,
  locks: readonly L[],
): Promise<readonly L[]> {
  const renew = async (batch: readonly L[]): Promise<readonly L[]> => {
    const pairs = batch.flatMap(({ id, token }) => [id, token])
    const lost = await run(renewLocksScript, { any: `${base}active` }, { base, lockMs }, pairs)
    return lost.flatMap((number) => batch[number - 1] ?? [])
  }
  return (await Promise.all(batchesOf(locks).map(renew))).flat()
}

function batchesOf<L>(locks: readonly L[]): readonly (readonly L[])[] {
  return Array.from({ length: Math.ceil(locks.length / BATCH_SIZE) }, (_, batch) =>
    locks.slice(batch * BATCH_SIZE, (batch + 1) * BATCH_SIZE),
  )
}

export interface Renewal {
  addTable(table: SharedTable): void
  end(): void
}

/**
 * Starts renewing a group's locks. `redis` must reject commands that it can't send immediately or that get no reply, because a late
 * renewal is useless.
 */
export function startRenewal(redis: Commander, group: LockGroup): Renewal {
  const lastTurn = new Int32Array(group.lastTurn)
  const tables = group.tables.map((table) => new SharedLockTable(table))
  const run = runnerOn(redis)
  /** Locks younger than this are not renewed until the next round, because most of their tasks will have ended by then. */
  const youngMs = group.renewalMs / 4
  /** Whether commands of this group have no reply yet. */
  let isBusy = false

  const dueLocks = (table: SharedLockTable): TableEntry[] => {
    const due: TableEntry[] = []
    for (let slot = 0; slot < table.slots; slot++) {
      if (!table.isTaken(slot) || msBetween(table.since(slot), machineMs()) < youngMs) continue
      const entry = table.read(slot)
      if (entry !== undefined) due.push(entry)
    }
    return due
  }
  const renew = async (table: SharedLockTable, entries: readonly TableEntry[]): Promise<void> => {
    const sentAt = machineMs()
    const lost = new Set(await renewLocks(run, group, entries))
    for (const entry of entries) {
      if (lost.has(entry)) table.markLost(entry)
      else table.markRenewed(entry, sentAt)
    }
  }
  const renewAll = async (): Promise<void> => {
    await Promise.all(tables.flatMap((table) => batchesOf(dueLocks(table)).map((batch) => renew(table, batch))))
  }
  const isMainThreadStalled = (): boolean =>
    group.eventLoopStallLimitMs !== undefined &&
    msBetween(Atomics.load(lastTurn, 0), machineMs()) > group.eventLoopStallLimitMs

  const onInterval = (): void => {
    if (isBusy || isMainThreadStalled()) return
    isBusy = true
    // An error needs no handling here: the main thread notices locks that are too old, and its own connection reports the outage.
    renewAll()
      .catch(() => {})
      .finally(() => {
        isBusy = false
      })
  }
  const timer = setInterval(onInterval, group.renewalMs)
  return { addTable: (table) => tables.push(new SharedLockTable(table)), end: () => clearInterval(timer) }
}
