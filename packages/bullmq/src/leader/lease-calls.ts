// Acquires, renews and releases the lease on a namespace's leadership. The process that holds the lease leads. The lease expires
// by Redis's clock unless the leader renews it.
import { type LeaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { resignScript } from '../scripts/leader/resign.ts'
import { takeLeaseScript } from '../scripts/leader/take-lease.ts'
import { type Commander, runScript } from '../scripts/script.ts'

export interface LeaseAnswer {
  /** 0 if another process leads, or if this version is older than the namespace's data. */
  readonly fencing: number
  readonly leftMs: number
}

export interface LeaseRequest {
  readonly holder: string
  readonly leaseMs: number
  /** The highest fencing number that the caller has seen. */
  readonly above: number
}

/** Acquires or renews the lease. The call is atomic and takes one round trip. */
export function takeLease(redis: Commander, keys: LeaderKeys, request: LeaseRequest): Promise<LeaseAnswer> {
  return runScript(redis, takeLeaseScript, keys, { ...request, schemaVersion: SCHEMA_VERSION })
}

/**
 * Releases the lease if the caller holds it, and announces that the namespace has no leader. The call is atomic and takes one
 * round trip.
 */
export function resign(redis: Commander, keys: LeaderKeys, holder: string): Promise<void> {
  return runScript(redis, resignScript, keys, { holder, channel: keys.channel })
}
