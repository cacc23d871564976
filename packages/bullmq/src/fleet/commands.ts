// Commands: kept with what each worker makes of them, for as long as somebody may ask who did what.
import { BullpenError } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import {
  type Command,
  type CommandAnswer,
  type CommandRecord,
  recipients,
  SILENT_AFTER_MS,
} from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import type { FleetKeys } from '../keys.ts'
import { type KeptCommand, switchedQueue } from './queue-settings.ts'
import type { Registered } from './registry.ts'
import { ANSWER, COMMANDS, KEEP } from './scripts.ts'

const KEPT_MS = 7 * 86_400_000
const KEPT_AT_MOST = 10_000

type Asked = Omit<Command, 'at'>

/** @throws BullpenError `worker_not_found` when the spec names one that is not there, or is silent. */
export function concerned({ spec }: Asked, { workers, now }: Registered): readonly string[] {
  const found = recipients(spec, workers, now)
  if (found.length === 0 && spec.action !== 'limit' && spec.worker !== undefined) {
    throw new BullpenError('worker_not_found', `no live worker is called '${spec.worker}'`)
  }
  return found
}

/** Atomic; one round trip. The same id and spec twice is one command. @throws BullpenError `command_id_reused`. */
export async function keepCommand(
  redis: Redis,
  keys: FleetKeys,
  { id, spec, by }: Asked,
  workers: readonly string[],
): Promise<KeptCommand> {
  const names = [keys.command(id), keys.commands, keys.unset]
  const hasSwitch = switchedQueue(spec) === undefined ? '' : '1'
  const text = JSON.stringify(sorted(spec))
  const answer = await redis.eval(
    KEEP,
    names.length,
    ...names,
    keys.base,
    id,
    text,
    by,
    hasSwitch,
    KEPT_MS,
    KEPT_AT_MOST,
    ...workers,
  )
  if (answer === null) {
    throw new BullpenError('command_id_reused', `the id '${id}' was used for another command; take a new one`)
  }
  const [sequence = '', at] = answer as string[]
  return { id, spec, sequence, at: Number(at) }
}

/** One round trip. The first answer of a worker counts. */
export async function keepAnswer(
  redis: Redis,
  keys: FleetKeys,
  command: string,
  { worker, outcome, detail }: CommandAnswer,
): Promise<void> {
  const names = [keys.command(command), keys.inbox(worker)]
  const text = JSON.stringify({ outcome, detail }).slice(0, -1)
  await redis.eval(ANSWER, names.length, ...names, keys.base, command, worker, text)
}

/** One round trip; the newest first. */
export async function readCommands(
  redis: Redis,
  keys: FleetKeys,
  which: { readonly id: string } | { readonly newest: number },
): Promise<readonly (CommandRecord & KeptCommand)[]> {
  const [id, newest] = 'id' in which ? [which.id, 0] : ['', which.newest]
  const answer = await redis.eval(COMMANDS, 2, keys.commands, keys.beats, keys.base, id, newest)
  const [now, ...found] = answer as [string, ...[string, string[], string[]][]]
  return found.map(([each, fields, seen]) => readCommand(each, pairs(fields), pairs(seen), Number(now)))
}

function readCommand(
  id: string,
  fields: ReadonlyMap<string, string>,
  seen: ReadonlyMap<string, string>,
  now: number,
): CommandRecord & KeptCommand {
  const answers = [...fields]
    .filter(([name]) => name.startsWith('answer:'))
    .map(([name, stored]) => readAnswer(name.slice('answer:'.length), stored, seen, now))
    .sort((one, other) => (one.worker < other.worker ? -1 : 1))
  return {
    id,
    spec: JSON.parse(fields.get('spec') ?? '') as CommandSpec,
    by: fields.get('by') ?? '',
    at: Number(fields.get('at')),
    sequence: fields.get('sequence') ?? '',
    answers,
  }
}

/** A worker that is silent may come back and answer after all: until it is forgotten that is not decided. */
function readAnswer(worker: string, stored: string, seen: ReadonlyMap<string, string>, now: number): CommandAnswer {
  if (stored !== 'pending') return { worker, ...(JSON.parse(stored) as Omit<CommandAnswer, 'worker'>) }
  const silentAt = Number(seen.get(worker) ?? 0) + SILENT_AFTER_MS
  return silentAt < now ? { worker, outcome: 'gone', at: silentAt } : { worker, outcome: 'pending' }
}

function pairs(flat: readonly string[]): Map<string, string> {
  return new Map(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']))
}

/** The same spec is the same text, in whatever spec its fields were written. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
