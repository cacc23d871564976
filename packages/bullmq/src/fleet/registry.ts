// Implements the registry of workers. With every heartbeat, a worker stores its status and receives the commands that are
// addressed to it.
import type { Log } from '@bullpen/contract'
import { FORGOTTEN_AFTER_MS, type RegisteredWorker, type WorkerStatus } from '@bullpen/engine/internal'
import type { FleetKeys } from '../keys.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { leave } from '../scripts/fleet/leave-fleet.ts'
import { readWorkerPage } from '../scripts/fleet/read-workers.ts'
import { type HeartbeatReply, heartbeat } from '../scripts/fleet/worker-heartbeat.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { FEATURES } from './features.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

/**
 * The maximum number of commands per heartbeat. The rest follow with the next heartbeat, once the worker has responded to these.
 */
const COMMANDS_PER_REPLY = 100

/** The approximate number of workers that one script reads. */
const WORKERS_PER_PAGE = 100

/** Stores a worker's status and returns the commands for that worker. Takes one round trip. */
export function storeHeartbeat(
  redis: Commander,
  { base, heartbeats, unapplied, settingsRevision, logLevel, ...keys }: FleetKeys,
  workerStatus: WorkerStatus,
): Promise<HeartbeatReply> {
  const { worker } = workerStatus
  const names = {
    heartbeats,
    worker: keys.worker(worker),
    inbox: keys.inbox(worker),
    unapplied,
    settingsRevision,
    logLevel,
  }
  const limits = { silence: FORGOTTEN_AFTER_MS, limit: COMMANDS_PER_REPLY }
  const stored = encodeStatus({ ...workerStatus, features: FEATURES })
  return runScript(redis, heartbeat, names, { base, id: worker, ...stored, ...limits })
}

/** Removes a worker from the registry. Takes one round trip for every hundred commands that the worker has not responded to. */
export async function leaveFleet(redis: Commander, { heartbeats, base }: FleetKeys, worker: string): Promise<void> {
  let isRemoved = false
  while (!isRemoved) isRemoved = await runScript(redis, leave, { heartbeats }, { base, id: worker })
}

export interface RegisteredWorkers {
  readonly now: number
  readonly workers: readonly RegisteredWorker[]
}

/**
 * Reads all registered workers. Takes one round trip for every hundred workers. Without 'slots', the returned pools have no
 * slots, which is enough to determine a command's recipients.
 */
export async function readWorkers(
  redis: Commander,
  { heartbeats, base }: FleetKeys,
  slots: 'slots' | '',
  log: Log,
): Promise<RegisteredWorkers> {
  const logUnreadable = throttledLog((err: unknown) => log.warn({ err }, "a worker's status could not be read"))
  // A scan may return a worker twice.
  const workers = new Map<string, RegisteredWorker>()
  for (let cursor = '0'; ; ) {
    const args = { base, silence: FORGOTTEN_AFTER_MS, slots, cursor, count: WORKERS_PER_PAGE }
    const page = await runScript(redis, readWorkerPage, { heartbeats }, args)
    for (const { id, seenAt, status, slots } of page.workers) {
      try {
        workers.set(id, { ...decodeStatus(status, slots || undefined), seenAt })
      } catch (err) {
        logUnreadable(err)
      }
    }
    if (page.next === '0') return { now: page.now, workers: [...workers.values()] }
    cursor = page.next
  }
}
