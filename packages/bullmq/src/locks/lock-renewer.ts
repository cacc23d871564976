// Keeps one consumer's locks renewed. Stores the locks in a table that the renewal thread reads, and reports a lost or overdue
// lock before another process can start the lock's task.
import type { Log } from '@bullpen/contract'
import type { LockGroup } from './lock-messages.ts'
import { machineMs, msBetween } from './machine-clock.ts'
import { joinRenewalThread } from './renewal-thread.ts'
import { SharedLockTable } from './shared-lock-table.ts'

/** A lock is reported as lost when this share of its duration is left. */
const MARGIN = 1 / 10
/** A lock has been renewed late if only this share of its duration was left. */
const LATE = 1 / 2
/** How many times per renewal interval the locks are checked. */
const CHECKS_PER_INTERVAL = 4

export interface LockRenewerOptions extends Pick<LockGroup, 'base' | 'lockMs' | 'renewalMs' | 'eventLoopStallLimitMs'> {
  readonly redisUrl: string
  /** The number of locks that the consumer usually holds at once. */
  readonly slots: number
  /** Called with the number of locks that have not been renewed for half of their duration. Must not throw or block. */
  readonly onLate?: ((locks: number) => void) | undefined
  /** Called each time that the renewal thread has ended, once for all renewers of the process with the same function. Must not throw. */
  readonly onThreadEnded?: (() => void) | undefined
  readonly log: Log
}

export interface RenewedLock {
  /**
   * Returns false if the lock is lost or may have expired, even if the event loop has been blocked and `onLost` has not been called yet.
   */
  isHeld(): boolean
  /** Stops renewing the lock. */
  release(): void
}

/**
 * `isByStall` says whether the lock is lost because the event loop of this process has been blocked for longer than its limit. Otherwise,
 * Redis did not renew the lock in time.
 */
export type OnLost = (isByStall: boolean) => void

export interface LockRenewer {
  /**
   * Resolves once locks are being renewed. A task that starts before that may lose its lock if it blocks the event loop
   * immediately.
   */
  readonly ready: Promise<void>
  /**
   * Keeps renewing a lock until it is released. `ageMs` is the longest time that may have passed since the lock was
   * acquired. `onLost` is called at most once: when another process has taken the task, or when the lock may expire before this
   * process would notice.
   */
  add(id: string, token: string, ageMs: number, onLost: OnLost): RenewedLock
  /** Returns whether a lock of this age may have expired. */
  isTooOld(ageMs: number): boolean
  /** Stops renewing all locks. */
  close(): void
}

let groups = 0

export function openLockRenewer(options: LockRenewerOptions): LockRenewer {
  const { redisUrl, slots, log, base, lockMs, renewalMs, eventLoopStallLimitMs, onLate = () => {} } = options
  const { onThreadEnded = () => {} } = options
  const maxAgeMs = lockMs * (1 - MARGIN)
  const first = new LockSlots(SharedLockTable.of(slots), maxAgeMs)
  const tables: LockSlots[] = [first]
  const lastTurn = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  Atomics.store(lastTurn, 0, machineMs())
  const group: LockGroup = {
    number: ++groups,
    base,
    lockMs,
    renewalMs,
    eventLoopStallLimitMs,
    lastTurn: lastTurn.buffer as SharedArrayBuffer,
    tables: [first.table.shared],
  }
  const membership = joinRenewalThread(redisUrl, group, log, onThreadEnded)

  const check = (): void => {
    const now = machineMs()
    const isByStall = msBetween(Atomics.load(lastTurn, 0), now) > (eventLoopStallLimitMs ?? Number.POSITIVE_INFINITY)
    Atomics.store(lastTurn, 0, now)
    const late = tables.reduce((locks, each) => locks + each.newlyLate(now, lockMs * LATE), 0)
    if (late > 0) onLate(late)
    for (const each of tables) each.reportLost(now, isByStall)
  }
  const timer = setInterval(check, renewalMs / CHECKS_PER_INTERVAL).unref()

  /** Returns a table with a free slot of this size, adding a table if there is none. */
  const tableFor = (units: number): LockSlots => {
    const found = tables.find((each) => each.hasFreeSlot && each.table.fits(units))
    if (found !== undefined) return found
    const added = new LockSlots(SharedLockTable.of(slots, units), maxAgeMs)
    tables.push(added)
    membership.addTable(added.table.shared)
    return added
  }

  return {
    ready: membership.ready,
    add: (id, token, ageMs, onLost) =>
      tableFor(id.length + token.length + 1).take(id, token, (machineMs() - ageMs) | 0, onLost),
    isTooOld: (ageMs) => ageMs > maxAgeMs,
    close() {
      clearInterval(timer)
      membership.leave()
    },
  }
}

/** A table, its free slots, and the callback for each slot that is taken. */
class LockSlots {
  readonly table: SharedLockTable
  readonly #maxAgeMs: number
  readonly #free: number[]
  /** Undefined if the slot is free or its callback has been called. */
  readonly #onLost: (OnLost | undefined)[]
  /** The slots whose locks were late at the last check. */
  readonly #late = new Set<number>()

  constructor(table: SharedLockTable, maxAgeMs: number) {
    this.table = table
    this.#maxAgeMs = maxAgeMs
    this.#free = Array.from({ length: table.slots }, (_, slot) => table.slots - 1 - slot)
    this.#onLost = Array.from({ length: table.slots }, () => undefined)
  }

  get hasFreeSlot(): boolean {
    return this.#free.length > 0
  }

  take(id: string, token: string, since: number, onLost: OnLost): RenewedLock {
    const slot = this.#free.pop()
    if (slot === undefined) throw new RangeError('the lock table has no free slot')
    this.table.take(slot, id, token, since)
    this.#onLost[slot] = onLost
    return {
      isHeld: () => !this.#isLost(slot, machineMs()),
      release: () => {
        this.#onLost[slot] = undefined
        this.#late.delete(slot)
        this.table.release(slot)
        this.#free.push(slot)
      },
    }
  }

  /** Returns how many locks were renewed in time at the last check and are older than this now. */
  newlyLate(now: number, lateMs: number): number {
    let count = 0
    for (const [slot, onLost] of this.#onLost.entries()) {
      if (onLost === undefined) continue
      if (msBetween(this.table.since(slot), now) <= lateMs) this.#late.delete(slot)
      else if (!this.#late.has(slot)) {
        this.#late.add(slot)
        count++
      }
    }
    return count
  }

  reportLost(now: number, isByStall: boolean): void {
    for (const [slot, onLost] of this.#onLost.entries()) {
      if (onLost === undefined || !this.#isLost(slot, now)) continue
      this.#onLost[slot] = undefined
      onLost(isByStall)
    }
  }

  #isLost(slot: number, now: number): boolean {
    return this.table.isLost(slot) || msBetween(this.table.since(slot), now) > this.#maxAgeMs
  }
}
