// The registry: which workers there are, what each has told of itself last, and what it is told in turn.
import type { Log } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import { type Command, FORGOTTEN_AFTER_MS, type RegisteredWorker, type WorkerStatus } from '@bullpen/engine/internal'
import type { ChainableCommander, Redis } from 'ioredis'
import type { FleetKeys } from '../keys.ts'
import { throttledLog } from '../throttled-log.ts'
import { BEAT, LEAVE, PROCESSES } from './scripts.ts'
import { decodeStatus, encodeStatus } from './status-codec.ts'

/** More come with the next beat, when these are answered. */
const TOLD_AT_ONCE = 100

/** Adds one command: it writes the status, and asks what is to be told. */
export function askBeat(pipeline: ChainableCommander, keys: FleetKeys, status: WorkerStatus): ChainableCommander {
  const { about, slots } = encodeStatus(status)
  const { worker } = status
  const names = [keys.beats, keys.worker(worker), keys.inbox(worker), keys.unset]
  return pipeline.eval(BEAT, names.length, ...names, keys.base, worker, about, slots, FORGOTTEN_AFTER_MS, TOLD_AT_ONCE)
}

/** `unset`: ids of commands whose queue's switch is not known to be set. */
export function readBeat(answer: unknown): {
  readonly commands: readonly Command[]
  readonly unset: readonly string[]
} {
  const [told, unset] = answer as [string[], string[]]
  const commands = Array.from({ length: told.length / 4 }, (_, i) => {
    const [id = '', spec = '', by = '', at] = told.slice(4 * i, 4 * i + 4)
    return { id, spec: JSON.parse(spec) as CommandSpec, by, at: Number(at) }
  })
  return { commands, unset }
}

/** One round trip. */
export async function leaveFleet(redis: Redis, keys: FleetKeys, worker: string): Promise<void> {
  await redis.eval(LEAVE, 1, keys.beats, keys.base, worker)
}

export interface Registered {
  readonly now: number
  readonly workers: readonly RegisteredWorker[]
}

/** One round trip. Without `slots` each pool has none: enough to know whom a command concerns. */
export async function readProcesses(redis: Redis, keys: FleetKeys, slots: 'slots' | '', log: Log): Promise<Registered> {
  const answer = await redis.eval(PROCESSES, 1, keys.beats, keys.base, FORGOTTEN_AFTER_MS, slots)
  const [now, ...stored] = answer as string[]
  const unreadable = throttledLog((err: unknown) => log.warn({ err }, 'what a worker tells of itself can’t be read'))
  const workers: RegisteredWorker[] = []
  for (let i = 0; i < stored.length; i += 3) {
    const [seenAt, about = '', rows] = stored.slice(i, i + 3)
    try {
      workers.push({ ...decodeStatus(about, rows || undefined), seenAt: Number(seenAt) })
    } catch (err) {
      unreadable(err)
    }
  }
  return { now: Number(now), workers }
}
