// Reads why a task does not run: from its queue, from the fleet, and from the command that holds the queue.
import type { Log, TaskRecord } from '@bullpen/contract'
import { MAX_AHEAD } from '@bullpen/contract/internal'
import { livePools, type WaitFacts } from '@bullpen/engine/internal'
import { commandAt, readCommand } from '../fleet/commands.ts'
import { decodeDrain } from '../fleet/queue-settings.ts'
import { readWorkers } from '../fleet/registry.ts'
import { THROTTLE_MARK } from '../internals/throttle.ts'
import { type FleetKeys, fleetKeys, type QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-bounds.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readWaitScript } from '../store/scripts.ts'

export interface WaitFactsOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly keys: QueueKeys
  readonly log: Log
}

/** Takes one round trip, one more for every hundred workers beyond the first, and one more if a command holds the queue. */
export async function readWaitFacts(
  task: TaskRecord,
  { redis, namespace, keys, log }: WaitFactsOptions,
): Promise<WaitFacts> {
  const fleet = fleetKeys(namespace)
  const [stored, { workers, now: readAt }, served] = await Promise.all([
    runScript(redis, readWaitScript, keys, { id: task.id, max: MAX_AHEAD }),
    readWorkers(redis, fleet, '', log),
    redis.zscore(fleet.served, task.queue),
  ])
  const [nowText, postponed, lost, ahead, meta, settings, active, used, usedForMs] = stored
  const [paused, concurrency, max, perMs] = meta
  const isOutboxFull = paused === CLOSED_BY_OUTBOX
  const [pause, drain] = await Promise.all([
    paused == null || isOutboxFull ? undefined : pauseBy(settings[0], redis, fleet),
    drainOf(settings[1], redis, fleet),
  ])
  const now = Number(nowText)
  const until = now + usedForMs
  const isThrottled = used === THROTTLE_MARK && usedForMs > 0
  const isUsed = max != null && max !== THROTTLE_MARK && usedForMs > 0 && Number(used) >= Number(max)
  return {
    ...{ now, task, ahead, pause, drain, isOutboxFull, active },
    lane: task.waitsFor,
    isPostponed: postponed !== null,
    isLost: lost !== null && task.status === 'waiting',
    throttledUntil: isThrottled ? until : undefined,
    usedRate: isUsed && !isThrottled ? { until, max: Number(max), perMs: Number(perMs) } : undefined,
    concurrency: concurrency == null ? undefined : Number(concurrency),
    pools: livePools(workers, task.queue, readAt),
    servedAt: served === null ? undefined : Number(served),
  }
}

/** Names the command that has paused the queue. BullMQ's own clients pause a queue without a command. */
async function pauseBy(
  sequence: string | null | undefined,
  redis: Commander,
  fleet: FleetKeys,
): Promise<NonNullable<WaitFacts['pause']>> {
  const command = sequence == null ? undefined : await commandAt(redis, fleet, sequence)
  return command?.spec.action === 'pause' ? { since: command.at, by: command.by } : {}
}

async function drainOf(
  stored: string | null | undefined,
  redis: Commander,
  fleet: FleetKeys,
): Promise<WaitFacts['drain']> {
  const drain = decodeDrain(stored)
  if (drain === undefined) return undefined
  const by = (await readCommand(redis, fleet, drain.command))?.by
  return { mode: drain.mode, since: drain.since, ...(by !== undefined && { by }) }
}
