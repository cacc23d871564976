// Renews one consumer's locks at a fixed interval while the main thread's event loop is not blocked.
import { closeConnection, nodeOfKey } from '../redis/node-of-key.ts'
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
  const lost = await runScript(redis, renewLockScript, renewalKeys(base), { base, lockMs }, pairs)
  return lost.flatMap((number) => locks[number - 1] ?? [])
}

function renewalKeys(base: string): { readonly stalled: string } {
  return { stalled: `${base}stalled` }
}

export interface Renewal {
  addTable(table: SharedTable): void
  end(): void
}

/**
 * The state of a connection to a server, which the groups of all queues on that server share. Times are the machine clock's. A
 * connection that was closed because the server did not respond is replaced by a new one.
 */
interface Connection {
  answeredAt: number
  pingedAt: number
}

/**
 * The connections of each client, by node. Each node of a cluster has its own connection, because one node may fail to respond
 * while the others do. A single server has one connection.
 */
const connections = new WeakMap<object, Map<string, Connection>>()

/**
 * Starts renewing a group's locks. `redis` must reject commands that it can't send immediately, because a late renewal is
 * useless.
 */
export function startRenewal(redis: Commander, group: LockGroup, now: () => number = machineMs): Renewal {
  const lastTurn = new Int32Array(group.lastTurn)
  const tables = group.tables.map((table) => new SharedLockTable(table))
  /** Locks younger than this are not renewed until the next round, because most of their tasks will have ended by then. */
  const youngMs = group.renewalMs / 4
  const ofClient = connections.get(redis) ?? new Map<string, Connection>()
  connections.set(redis, ofClient)
  /** A key of the group's queue. */
  const { stalled } = renewalKeys(group.base)
  /** The connection on which this group's commands are in flight, or undefined if none are. */
  let busyOn: Connection | undefined

  const newConnection = (node: string): Connection => {
    const connection = { answeredAt: now(), pingedAt: now() }
    ofClient.set(node, connection)
    return connection
  }
  /** Returns the connection to the queue's node, which changes when another node takes over. */
  const currentConnection = (): Connection => {
    const node = nodeOfKey(redis, stalled)
    const connection = ofClient.get(node) ?? newConnection(node)
    // A dead connection may take minutes to fail, whereas a new connection works as soon as the network does.
    if (msBetween(connection.answeredAt, now()) <= group.lockMs) return connection
    closeConnection(redis, node)
    return newConnection(node)
  }
  currentConnection()

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
  const renewAll = async (connection: Connection): Promise<void> => {
    const batches = tables.flatMap((table) => {
      const due = dueLocks(table)
      const parts = Array.from({ length: Math.ceil(due.length / BATCH_SIZE) }, (_, part) =>
        due.slice(part * BATCH_SIZE, (part + 1) * BATCH_SIZE),
      )
      return parts.map((part) => renew(table, part))
    })
    if (batches.length === 0) return pingIfSilent(connection)
    await Promise.all(batches)
    connection.answeredAt = now()
  }
  /**
   * If there are no locks to renew, reads one of the queue's keys instead, so that an unresponsive server is noticed before any lock
   * depends on it. PING is not used, because a cluster client would send it to any node. For all groups that share a connection, one
   * command every half lock duration is enough.
   */
  const pingIfSilent = async (connection: Connection): Promise<void> => {
    if (msBetween(connection.answeredAt, now()) < group.lockMs / 2) return
    if (msBetween(connection.pingedAt, now()) < group.renewalMs) return
    connection.pingedAt = now()
    await redis.exists(stalled)
    connection.answeredAt = now()
  }
  const isMainThreadStalled = (): boolean =>
    group.eventLoopStallLimitMs !== undefined &&
    msBetween(Atomics.load(lastTurn, 0), now()) > group.eventLoopStallLimitMs

  const onInterval = (): void => {
    if (isMainThreadStalled()) return
    const sentOn = currentConnection()
    // Commands that were in flight on an earlier connection may never settle, because ioredis drops them when it reconnects.
    if (busyOn === sentOn) return
    busyOn = sentOn
    // An error needs no handling here: the main thread notices locks that are too old, and its own connection reports the outage.
    renewAll(sentOn)
      .catch(() => {})
      .finally(() => {
        if (busyOn === sentOn) busyOn = undefined
      })
  }
  const timer = setInterval(onInterval, group.renewalMs)
  return { addTable: (table) => tables.push(new SharedLockTable(table)), end: () => clearInterval(timer) }
}
