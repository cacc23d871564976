// Keeps the locks of one feed: writes down which are held, and tells in time of those that can't be kept.
import type { Log } from '@bullpen/contract'
import type { Charge } from './lock-messages.ts'
import { machineMs, msBetween } from './machine-clock.ts'
import { type Tended, tend } from './renewal-thread.ts'
import { SharedLockTable } from './shared-lock-table.ts'

/** Of the lock's duration: so long before it can run out its task is told. */
const MARGIN = 1 / 10
/** In one renewal interval: how often this loop beats and looks. */
const LOOKS = 4

export interface LockKeeperOptions extends Pick<Charge, 'base' | 'lockMs' | 'renewalMs' | 'eventLoopStallLimitMs'> {
  readonly redisUrl: string
  /** So many at once are usual. */
  readonly slots: number
  readonly log: Log
}

export interface LockRenewer {
  /** Resolves when locks are renewed. A task that is taken before may lose its own when it blocks the loop at once. */
  readonly ready: Promise<void>
  /**
   * `ageMs`: how old the lock may be already. `lost` is called at most once: another process may have the task, or could
   * before that is known. Returns what lets go of it.
   */
  hold(id: string, token: string, ageMs: number, lost: () => void): () => void
  /** Whether a lock of this age may have run out. */
  isTooOld(ageMs: number): boolean
  /** Renews nothing more. */
  close(): void
}

let charges = 0

export function openLockRenewer(options: LockKeeperOptions): LockRenewer {
  const { redisUrl, slots, log, base, lockMs, renewalMs, eventLoopStallLimitMs } = options
  const first = new Slots(SharedLockTable.of(slots))
  const all: Slots[] = [first]
  const beat = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  Atomics.store(beat, 0, machineMs())
  const charge: Charge = {
    number: ++charges,
    base,
    lockMs,
    renewalMs,
    eventLoopStallLimitMs,
    beat: beat.buffer as SharedArrayBuffer,
    tables: [first.table.shared],
  }
  const tended: Tended = tend(redisUrl, charge, log)
  const oldestMs = lockMs * (1 - MARGIN)

  const look = (): void => {
    const now = machineMs()
    Atomics.store(beat, 0, now)
    for (const each of all) each.tellLost(now, oldestMs)
  }
  const timer = setInterval(look, renewalMs / LOOKS).unref()

  const roomFor = (units: number): Slots => {
    const found = all.find((each) => each.isFree && each.table.fits(units))
    if (found !== undefined) return found
    const more = new Slots(SharedLockTable.of(slots, units))
    all.push(more)
    tended.add(more.table.shared)
    return more
  }

  return {
    ready: tended.ready,
    hold: (id, token, ageMs, lost) =>
      roomFor(id.length + token.length + 1).hold(id, token, (machineMs() - ageMs) | 0, lost),
    isTooOld: (ageMs) => ageMs > oldestMs,
    close() {
      clearInterval(timer)
      tended.leave()
    },
  }
}

/** Which slots of a table are free, and who is told when one is lost. */
class Slots {
  readonly table: SharedLockTable
  readonly #free: number[]
  /** Undefined when it was told, or its slot is free. */
  readonly #tell: ((() => void) | undefined)[]

  constructor(table: SharedLockTable) {
    this.table = table
    this.#free = Array.from({ length: table.slots }, (_, slot) => table.slots - 1 - slot)
    this.#tell = Array.from({ length: table.slots }, () => undefined)
  }

  get isFree(): boolean {
    return this.#free.length > 0
  }

  hold(id: string, token: string, since: number, lost: () => void): () => void {
    const slot = this.#free.pop()
    if (slot === undefined) throw new RangeError('no slot is free')
    this.table.hold(slot, id, token, since)
    this.#tell[slot] = lost
    return () => {
      this.#tell[slot] = undefined
      this.table.release(slot)
      this.#free.push(slot)
    }
  }

  tellLost(now: number, oldestMs: number): void {
    for (const [slot, tell] of this.#tell.entries()) {
      if (tell === undefined) continue
      if (!this.table.isLost(slot) && msBetween(this.table.since(slot), now) <= oldestMs) continue
      this.#tell[slot] = undefined
      tell()
    }
  }
}
