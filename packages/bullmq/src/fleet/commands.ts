// Commands: kept with what each process makes of them, for as long as somebody may ask who did what.
import { BullpenError, type Order } from '@bullpen/contract'
import { type Command, type CommandAnswer, type CommandRecord, recipients, SILENT_AFTER_MS } from '@bullpen/engine'
import type { Redis } from 'ioredis'
import type { FleetKeys } from '../keys.ts'
import { type KeptCommand, switchedQueue } from './queue-settings.ts'
import type { Registered } from './registry.ts'
import { ANSWER, COMMANDS, KEEP } from './scripts.ts'

const KEPT_MS = 7 * 86_400_000
const KEPT_AT_MOST = 10_000

type Asked = Omit<Command, 'at'>

/** @throws BullpenError `process_not_found` when the order names one that is not there, or is silent. */
export function concerned({ order }: Asked, { processes, now }: Registered): readonly string[] {
  const found = recipients(order, processes, now)
  if (found.length === 0 && order.action !== 'limit' && order.process !== undefined) {
    throw new BullpenError('process_not_found', `no live process is called '${order.process}'`)
  }
  return found
}

/** Atomic; one round trip. The same id and order twice is one command. @throws BullpenError `command_id_reused`. */
export async function keepCommand(
  redis: Redis,
  keys: FleetKeys,
  { id, order, by }: Asked,
  processes: readonly string[],
): Promise<KeptCommand> {
  const names = [keys.command(id), keys.commands, keys.unset]
  const hasSwitch = switchedQueue(order) === undefined ? '' : '1'
  const text = JSON.stringify(sorted(order))
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
    ...processes,
  )
  if (answer === null) {
    throw new BullpenError('command_id_reused', `the id '${id}' was used for another command; take a new one`)
  }
  const [sequence = '', at] = answer as string[]
  return { id, order, sequence, at: Number(at) }
}

/** One round trip. The first answer of a process counts. */
export async function keepAnswer(
  redis: Redis,
  keys: FleetKeys,
  command: string,
  { process, outcome, detail }: CommandAnswer,
): Promise<void> {
  const names = [keys.command(command), keys.inbox(process)]
  const text = JSON.stringify({ outcome, detail }).slice(0, -1)
  await redis.eval(ANSWER, names.length, ...names, keys.base, command, process, text)
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
    .sort((one, other) => (one.process < other.process ? -1 : 1))
  return {
    id,
    order: JSON.parse(fields.get('order') ?? '') as Order,
    by: fields.get('by') ?? '',
    at: Number(fields.get('at')),
    sequence: fields.get('sequence') ?? '',
    answers,
  }
}

/** A process that is silent may come back and answer after all: until it is forgotten that is not decided. */
function readAnswer(process: string, stored: string, seen: ReadonlyMap<string, string>, now: number): CommandAnswer {
  if (stored !== 'pending') return { process, ...(JSON.parse(stored) as Omit<CommandAnswer, 'process'>) }
  const silentAt = Number(seen.get(process) ?? 0) + SILENT_AFTER_MS
  return silentAt < now ? { process, outcome: 'gone', at: silentAt } : { process, outcome: 'pending' }
}

function pairs(flat: readonly string[]): Map<string, string> {
  return new Map(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']))
}

/** The same order is the same text, in whatever order its fields were written. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
