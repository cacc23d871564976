// The lease of a namespace's leader. Whoever holds it leads. It expires by Redis's clock unless the leader renews it.
import type { Redis } from 'ioredis'
import { type LeaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { defineScript, runScript } from '../scripts/script.ts'

/**
 * Takes or renews the lease. Returns the caller's fencing number, or 0 if the caller does not lead, and how long the lease still
 * lasts, in ms.
 *
 * `above`: the highest fencing number that the caller has met. If a failover has lost the newest numbers, the holder of the lease
 * gets a number above those that the queues have stored.
 */
const TAKE_LEASE = defineScript({
  name: 'take-lease',
  kind: 'frees',
  keys: ['lease', 'fencing', 'schema'],
  args: ['holder', 'leaseMs', 'schemaVersion', 'above'],
  lua: `
local newest = tonumber(redis.call('GET', schema) or '0')
if newest > tonumber(schemaVersion) then return { 0, tonumber(leaseMs) } end
local current = redis.call('GET', lease)
if current and current ~= holder then return { 0, redis.call('PTTL', lease) } end
local number = tonumber(redis.call('GET', fencing) or '0')
if not current or number <= tonumber(above) then
  number = math.max(number, tonumber(above)) + 1
  redis.call('SET', fencing, string.format('%.0f', number))
end
redis.call('SET', lease, holder, 'PX', leaseMs)
return { number, tonumber(leaseMs) }
`,
})

/** Releases the lease if the caller holds it, and announces that there is no leader. Returns nothing. */
const RESIGN = defineScript({
  name: 'resign',
  kind: 'frees',
  keys: ['lease'],
  args: ['holder', 'channel'],
  lua: `
if redis.call('GET', lease) ~= holder then return end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
`,
})

export interface LeaseAnswer {
  /** 0 if another process leads, or if this version is older than the namespace's data. */
  readonly fencing: number
  readonly leftMs: number
}

export interface LeaseRequest {
  readonly holder: string
  readonly leaseMs: number
  readonly above: number
}

/** Atomic. Takes one round trip. */
export async function takeLease(
  redis: Redis,
  { lease, fencing, schema }: LeaderKeys,
  request: LeaseRequest,
): Promise<LeaseAnswer> {
  const args = { ...request, schemaVersion: SCHEMA_VERSION }
  const [number, leftMs] = (await runScript(redis, TAKE_LEASE, { lease, fencing, schema }, args)) as [number, number]
  return { fencing: number, leftMs }
}

/** Atomic. Takes one round trip. */
export async function resign(redis: Redis, { lease, channel }: LeaderKeys, holder: string): Promise<void> {
  await runScript(redis, RESIGN, { lease }, { holder, channel })
}
