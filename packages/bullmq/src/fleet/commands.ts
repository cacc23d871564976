// Stores fleet commands, together with each worker's response, for a week.
import { BullpenError, milliseconds } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import {
  type Command,
  type CommandRecord,
  type CommandResponse,
  isAlive,
  type RegisteredWorker,
  SILENT_AFTER_MS,
} from '@bullpen/engine/internal'
import type { FleetKeys } from '../keys.ts'
import { pairsOf } from '../scripts/pairs.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readCommandsScript, respondToCommandScript, storeCommandScript } from '../store/scripts.ts'
import { changesSettings, isOfQueueOnly, type StoredCommand } from './queue-settings.ts'
import type { RegisteredWorkers } from './registry.ts'

const KEEP_MS = 7 * 86_400_000
const KEEP_AT_MOST = 10_000
/** How long a log level for all processes is in force if the command does not say, in ms. */
const LEVEL_MS = 86_400_000

/** The maximum number of commands that one script reads. Each may have as many responses as the fleet has workers. */
const COMMANDS_PER_PAGE = 20

export type NewCommand = Omit<Command, 'at'>

/**
 * Returns the workers that receive a command: the worker that the command names, or every live worker with a pool on its queue.
 * A command that names neither is for every live worker. A resize of all workers also goes to silent workers, because a
 * returning worker could not learn its size from any queue setting. `now` is the time by Redis's clock.
 */
export function recipients(spec: CommandSpec, workers: readonly RegisteredWorker[], now: number): readonly string[] {
  // Limits and breakers are those of a queue, so no worker has to act.
  if (isOfQueueOnly(spec)) return []
  const { queue, worker } = spec
  return workers
    .filter((each) => isAlive(each, now) || (spec.action === 'resize' && worker === undefined))
    .filter((each) => worker === undefined || each.worker === worker)
    .filter((each) => worker !== undefined || queue === undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.worker)
}

/**
 * Returns the workers that a command concerns.
 *
 * @throws BullpenError `worker_not_found` if the command names a worker that is unknown or silent.
 */
export function recipientsOf({ spec }: NewCommand, { workers, now }: RegisteredWorkers): readonly string[] {
  const found = recipients(spec, workers, now)
  if (found.length === 0 && !isOfQueueOnly(spec) && spec.worker !== undefined) {
    throw new BullpenError(
      'worker_not_found',
      `no live worker has id '${spec.worker}'; GET /v1/fleet lists all workers`,
    )
  }
  return found
}

/**
 * Stores a command. If a command with the same id and spec is already stored, changes nothing. The call is atomic and takes one
 * round trip.
 *
 * @throws BullpenError `command_id_reused` if the id was used with another spec.
 */
export async function storeCommand(
  redis: Commander,
  keys: FleetKeys,
  { id, spec, by, cancels = false }: NewCommand & Pick<StoredCommand, 'cancels'>,
  workers: readonly string[],
): Promise<StoredCommand> {
  const { base, commands, unapplied, logLevel } = keys
  const args = {
    base,
    id,
    spec: JSON.stringify(sorted(spec)),
    by,
    changesSettings: changesSettings(spec) ? '1' : '',
    keepMs: KEEP_MS,
    keepAtMost: KEEP_AT_MOST,
    cancels: cancels ? '1' : '',
    ...levelOfAll(spec),
  }
  const stored = await runScript(
    redis,
    storeCommandScript,
    { command: keys.command(id), commands, unapplied, logLevel },
    args,
    workers,
  )
  if (stored === null) {
    throw new BullpenError('command_id_reused', `command id '${id}' was already used for another command; use a new id`)
  }
  const [sequence, at] = stored
  return { id, spec, by, cancels, sequence, at: Number(at) }
}

/** Returns the level that a command sets for all processes, and for how long in ms. The level is '' if it sets none. */
function levelOfAll(spec: CommandSpec): { readonly level: string; readonly levelMs: number } {
  const isForAll = spec.action === 'log_level' && spec.worker === undefined && spec.queue === undefined
  if (!isForAll) return { level: '', levelMs: 0 }
  return { level: spec.level, levelMs: spec.for === undefined ? LEVEL_MS : milliseconds(spec.for) }
}

/** Stores a worker's response, unless the worker has already responded to the command. Takes one round trip. */
export async function storeResponse(
  redis: Commander,
  keys: FleetKeys,
  command: string,
  { worker, outcome, detail }: CommandResponse,
): Promise<void> {
  const names = { command: keys.command(command), inbox: keys.inbox(worker) }
  const text = JSON.stringify({ outcome, detail }).slice(0, -1)
  await runScript(redis, respondToCommandScript, names, { channel: keys.responses, id: command, worker, outcome: text })
}

/** Reads a command in one round trip. */
export async function readCommand(
  redis: Commander,
  { base, commands, heartbeats }: FleetKeys,
  id: string,
): Promise<(CommandRecord & StoredCommand) | undefined> {
  const args = { base, id, before: '', limit: 1 }
  const [now, , found] = await runScript(redis, readCommandsScript, { commands, heartbeats }, args)
  return found && decodeCommand(found, Number(now))
}

/** Reads the command with this position in the order of all commands, if it is still stored. Takes one round trip. */
export async function commandAt(
  redis: Commander,
  { base, commands, heartbeats }: FleetKeys,
  sequence: string,
): Promise<(CommandRecord & StoredCommand) | undefined> {
  const args = { base, id: '', before: sequence, limit: 1 }
  const [now, , found] = await runScript(redis, readCommandsScript, { commands, heartbeats }, args)
  const command = found && decodeCommand(found, Number(now))
  return command?.sequence === sequence ? command : undefined
}

/** Reads commands, newest first. Takes one round trip for every twenty commands. */
export async function readCommands(
  redis: Commander,
  { base, commands, heartbeats }: FleetKeys,
  limit: number,
): Promise<readonly (CommandRecord & StoredCommand)[]> {
  const records: (CommandRecord & StoredCommand)[] = []
  let before = '+inf'
  for (let left = limit; left > 0; left -= COMMANDS_PER_PAGE) {
    const args = { base, id: '', before, limit: Math.min(COMMANDS_PER_PAGE, left) }
    const [now, last, ...found] = await runScript(redis, readCommandsScript, { commands, heartbeats }, args)
    records.push(...found.map((each) => decodeCommand(each, Number(now))))
    if (last === '') break
    before = `(${last}`
  }
  return records
}

/** Decodes a command of ./read-commands.lua: its id, its fields, and the last heartbeat of each worker that has not responded. */
function decodeCommand(
  [id, flatFields, flatSeen]: readonly [string, readonly string[], readonly string[]],
  now: number,
): CommandRecord & StoredCommand {
  const [fields, seen] = [new Map(pairsOf(flatFields)), new Map(pairsOf(flatSeen))]
  const responses = [...fields]
    .filter(([name]) => name.startsWith('response:'))
    .map(([name, stored]) => readResponse(name.slice('response:'.length), stored, seen, now))
    .sort((one, other) => (one.worker < other.worker ? -1 : 1))
  return {
    id,
    spec: JSON.parse(fields.get('spec') ?? '') as CommandSpec,
    by: fields.get('by') ?? '',
    cancels: fields.has('cancels'),
    at: Number(fields.get('at')),
    sequence: fields.get('sequence') ?? '',
    responses,
  }
}

/**
 * Decodes a worker's response. A silent worker is shown as `gone`, although it may still return and respond until it is
 * forgotten.
 */
function readResponse(worker: string, stored: string, seen: ReadonlyMap<string, string>, now: number): CommandResponse {
  if (stored !== 'pending') return { worker, ...(JSON.parse(stored) as Omit<CommandResponse, 'worker'>) }
  const silentAt = Number(seen.get(worker) ?? 0) + SILENT_AFTER_MS
  return silentAt < now ? { worker, outcome: 'gone', at: silentAt } : { worker, outcome: 'pending' }
}

/** Sorts the fields, so that equal specs are stored as the same string. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
