// Renews the locks of a charge, each second, for as long as the main loop shows signs of life.
import type { Redis } from 'ioredis'
import type { Charge } from './lock-messages.ts'
import { machineMs, msBetween } from './machine-clock.ts'
import { type HeldLock, SharedLockTable, type SharedTable } from './shared-lock-table.ts'

/**
 * As BullMQ's own extendLocks, which also takes what was renewed off the list of those that may have lost their process.
 * KEYS: stalled. ARGV: base, lock in ms, then id and token of each. Returns which of them are not ours any more, from 1.
 */
const RENEW = `
local lost = {}
for i = 3, #ARGV, 2 do
  local lock = ARGV[1] .. ARGV[i] .. ':lock'
  if redis.call('GET', lock) == ARGV[i + 1] then
    redis.call('SET', lock, ARGV[i + 1], 'PX', ARGV[2])
    redis.call('SREM', KEYS[1], ARGV[i])
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost`

/** So many in one script: half a millisecond or so in which Redis does nothing else. */
const AT_ONCE = 250

type RenewingRedis = Redis & { bullpenRenewLocks(...args: (string | number)[]): Promise<number[]> }

/** On ioredis' own terms: a script's text is sent once, and then its hash. */
function renewing(redis: Redis): RenewingRedis {
  if (!('bullpenRenewLocks' in redis)) redis.defineCommand('bullpenRenewLocks', { numberOfKeys: 1, lua: RENEW })
  return redis as RenewingRedis
}

type Lock = Pick<HeldLock, 'id' | 'token'>

/** Returns those that another owner has, or nobody. */
export async function renewLocks<L extends Lock>(
  redis: Redis,
  { base, lockMs }: Pick<Charge, 'base' | 'lockMs'>,
  locks: readonly L[],
): Promise<readonly L[]> {
  const pairs = locks.flatMap(({ id, token }) => [id, token])
  const lost = await renewing(redis).bullpenRenewLocks(`${base}stalled`, base, lockMs, ...pairs)
  return lost.flatMap((number) => locks[number - 1] ?? [])
}

export interface Renewal {
  /** A table more. */
  add(table: SharedTable): void
  end(): void
}

/** Over a connection that refuses what it can't send now: a renewal that comes late is none. */
export function startRenewal(redis: Redis, charge: Charge, now: () => number = machineMs): Renewal {
  const beat = new Int32Array(charge.beat)
  const tables = charge.tables.map((table) => new SharedLockTable(table))
  /** Taken or renewed less than this ago, it is left to the next round: most tasks have ended by then. */
  const youngMs = charge.renewalMs / 4
  let answeredAt = now()
  let busy = false

  const held = (table: SharedLockTable): HeldLock[] => {
    const found: HeldLock[] = []
    for (let slot = 0; slot < table.slots; slot++) {
      if (!table.isHeld(slot) || msBetween(table.since(slot), now()) < youngMs) continue
      const lock = table.read(slot)
      if (lock !== undefined) found.push(lock)
    }
    return found
  }
  const renew = async (table: SharedLockTable, locks: readonly HeldLock[]): Promise<void> => {
    const sentAt = now()
    const lost = new Set(await renewLocks(redis, charge, locks))
    for (const lock of locks) {
      if (lost.has(lock)) table.lost(lock)
      else table.renewed(lock, sentAt)
    }
  }
  const round = async (): Promise<void> => {
    const batches = tables.flatMap((table) => {
      const locks = held(table)
      const parts = Array.from({ length: Math.ceil(locks.length / AT_ONCE) }, (_, part) =>
        locks.slice(part * AT_ONCE, (part + 1) * AT_ONCE),
      )
      return parts.map((part) => renew(table, part))
    })
    // Asked even when there is nothing to renew: whether it answers is known before it matters.
    await Promise.all(batches.length > 0 ? batches : [redis.ping()])
    answeredAt = now()
  }
  const turn = (): void => {
    if (
      charge.eventLoopStallLimitMs !== undefined &&
      msBetween(Atomics.load(beat, 0), now()) > charge.eventLoopStallLimitMs
    )
      return
    // A cut connection may take minutes to fail by itself; a new one is there as soon as the network is.
    if (msBetween(answeredAt, now()) > charge.lockMs) {
      answeredAt = now()
      redis.disconnect(true)
      // What was under way is neither answered nor refused any more: ioredis forgets it when it is connected again.
      busy = false
    }
    if (busy) return
    busy = true
    // The main loop sees for itself which locks are too old, and its own connection says what Redis lacks.
    round()
      .catch(() => {})
      .finally(() => {
        busy = false
      })
  }
  const timer = setInterval(turn, charge.renewalMs)
  return { add: (table) => tables.push(new SharedLockTable(table)), end: () => clearInterval(timer) }
}
