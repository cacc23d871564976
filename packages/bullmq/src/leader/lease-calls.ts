// Acquires, renews and releases the lease on a namespace's leadership. The process that holds the lease leads. The lease expires
// by Redis's clock unless the leader renews it.
import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaderKeys, leaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { resignScript, takeLeaseScript } from '../store/scripts.ts'

/**
 * The message of a leader that renews its lease. Every subscriber of the namespace receives it each second, and so knows that it still can.
 */
export const BEAT = '.'

export interface LeaseAnswer {
  /** 0 if another process leads, or if this version is older than the namespace's data. */
  readonly fencing: number
  readonly leftMs: number
}

export interface LeaseReply extends LeaseAnswer {
  /** The fencing number of the newest leader, which may be the caller. */
  readonly newest: number
}

export interface LeaseRequest {
  readonly holder: string
  readonly leaseMs: number
  /** The highest fencing number that the caller has seen. */
  readonly above: number
}

/** Acquires or renews the lease. The call is atomic and takes one round trip. */
export async function takeLease(redis: Commander, keys: LeaderKeys, request: LeaseRequest): Promise<LeaseReply> {
  const args = { ...request, schemaVersion: SCHEMA_VERSION, channel: keys.channel }
  const [fencing, leftMs, newest] = await runScript(redis, takeLeaseScript, keys, args)
  return { fencing, leftMs, newest }
}

/**
 * Releases the lease if the caller holds it, and announces that the namespace has no leader. The call is atomic and takes one
 * round trip.
 */
export function resign(redis: Commander, keys: LeaderKeys, holder: string): Promise<void> {
  return runScript(redis, resignScript, keys, { holder, channel: keys.channel })
}

/** How long a namespace may have no leader after one has died: until its lease expires, and another process asks. In ms. */
const WITHOUT_LEADER_MS = 4_000
const LOOK_EVERY_MS = 250

/** Returns whether a process holds the lease. Takes one round trip. */
export async function hasLease(redis: Commander, namespace: string): Promise<boolean> {
  return (await redis.exists(leaderKeys(namespace).lease)) === 1
}

/** Waits for a leader for as long as a change of leaders may take. Returns whether there is one. */
export async function awaitLease(isHeld: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + WITHOUT_LEADER_MS
  while (!(await isHeld())) {
    if (performance.now() > until) return false
    await sleep(LOOK_EVERY_MS)
  }
  return true
}
