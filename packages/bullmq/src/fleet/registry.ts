// Implements the registry of workers. With every heartbeat, a worker stores its status and receives the commands that are
// addressed to it.
import type { Log } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import {
  type Command,
  FORGOTTEN_AFTER_MS,
  isRunning,
  type LogLevelOverride,
  type RegisteredWorker,
  type WorkerStatus,
} from '@bullpen/engine/internal'
import type { FleetKeys } from '../keys.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { leaveFleetScript, readWorkersScript, workerHeartbeatScript } from '../store/scripts.ts'
import { FEATURES } from './features.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

/**
 * The maximum number of commands per heartbeat. The rest follow with the next heartbeat, once the worker has responded to these.
 */
const COMMANDS_PER_REPLY = 100

/** How long it is known when a queue was last served, in ms. */
const SERVED_MS = 30 * 86_400_000

/** The approximate number of workers that one script reads. */
const WORKERS_PER_PAGE = 100

export interface HeartbeatReply {
  /** The commands that the worker has not responded to, oldest first. */
  readonly commands: readonly Command[]
  /** The ids of up to ten commands whose queue settings may not have been applied. */
  readonly unapplied: readonly string[]
  /** Changes whenever any queue's settings change. */
  readonly revision: string
  readonly logLevel: LogLevelOverride | undefined
}

/** Stores a worker's status and returns the commands for that worker. Takes one round trip. */
export async function storeHeartbeat(
  redis: Commander,
  { base, heartbeats, unapplied, settingsRevision, logLevel, served, ...keys }: FleetKeys,
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
    served,
  }
  const limits = { silence: FORGOTTEN_AFTER_MS, limit: COMMANDS_PER_REPLY }
  const stored = encodeStatus({ ...workerStatus, features: FEATURES })
  const queues = workerStatus.draining ? [] : workerStatus.pools.filter(isRunning).map(({ queue }) => queue)
  const args = { base, id: worker, ...stored, ...limits, servedMs: SERVED_MS }
  const [rows, ids, revision, level] = await runScript(redis, workerHeartbeatScript, names, args, queues)
  const commands = rowsOf(rows, 4).map(([id = '', spec = '', by = '', at]) => {
    return { id, spec: JSON.parse(spec) as CommandSpec, by, at: Number(at) }
  })
  return { commands, unapplied: ids, revision, logLevel: decodeLogLevel(level) }
}

/** Decodes the stored log level of all processes. */
export function decodeLogLevel(stored: string | null): LogLevelOverride | undefined {
  return stored === null || stored === '' ? undefined : (JSON.parse(stored) as LogLevelOverride)
}

/** Divides a flat list into rows of this length. */
function rowsOf(flat: readonly string[], length: number): readonly string[][] {
  return Array.from({ length: flat.length / length }, (_, i) => flat.slice(length * i, length * (i + 1)))
}

/** Removes a worker from the registry. Takes one round trip for every hundred commands that the worker has not responded to. */
export async function leaveFleet(redis: Commander, { heartbeats, base }: FleetKeys, worker: string): Promise<void> {
  let isRemoved = false
  while (!isRemoved) isRemoved = (await runScript(redis, leaveFleetScript, { heartbeats }, { base, id: worker })) === 1
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
    const [next, now, ...rows] = await runScript(redis, readWorkersScript, { heartbeats }, args)
    for (const [id = '', seenAt, status = '', slots = ''] of rowsOf(rows, 4)) {
      try {
        workers.set(id, { ...decodeStatus(status, slots || undefined), seenAt: Number(seenAt) })
      } catch (err) {
        logUnreadable(err)
      }
    }
    if (next === '0') return { now: Number(now), workers: [...workers.values()] }
    cursor = next
  }
}
