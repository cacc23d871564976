// bullpen pause, resume, stop, resize, limit and log-level: each sends one command and prints the workers' responses.
import type { Client, FleetOrder } from '@bullpen/client'
import type { CommandView } from '@bullpen/contract'
import { COMMANDED_LEVELS, MAX_CONCURRENCY, MAX_ENQUEUE_RATE, MAX_RATE } from '@bullpen/contract/internal'
import {
  parseBytes,
  parseChoice,
  parseCount,
  parseDuration,
  parseLimit,
  parseRate,
  requireValue,
} from '../../arguments/option-values.ts'
import { parseSlot, parseTarget, resolveWorker } from '../../arguments/target.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { commandLines } from '../../output/fleet/command-text.ts'
import { logLevelLines } from '../../output/fleet/fleet-text.ts'
import { plain } from '../../output/format.ts'
import type { CommandContext } from '../command-context.ts'

export function pause(context: CommandContext): Promise<ExitCode> {
  return sendToTarget(context, 'pause')
}

export function resume(context: CommandContext): Promise<ExitCode> {
  return sendToTarget(context, 'resume')
}

async function sendToTarget(context: CommandContext, action: 'pause' | 'resume'): Promise<ExitCode> {
  const target = parseTarget(context.values)
  const client = context.connect()
  return exitCodeOf(await sendCommand(context, client, { action, ...(await resolveWorker(client, target)) }))
}

export async function stop(context: CommandContext): Promise<ExitCode> {
  const slot = parseSlot(context.positionals[0] ?? '')
  const client = context.connect()
  const how = context.values.hard ? 'hard' : 'wait'
  return exitCodeOf(await sendCommand(context, client, { action: 'stop', ...(await resolveWorker(client, slot)), how }))
}

export async function resize(context: CommandContext): Promise<ExitCode> {
  const { values } = context
  const queue = requireValue('--queue QUEUE', values.queue)
  const concurrency = parseCount('--concurrency', requireValue('--concurrency N', values.concurrency), MAX_CONCURRENCY)
  const client = context.connect()
  const target = await resolveWorker(client, { ...parseTarget(values), queue })
  const command = await sendCommand(context, client, { action: 'resize', ...target, concurrency })
  // Unlike a pause or a limit, a resize is not stored for workers that start later.
  return command.responses.length === 0 ? EXIT.incomplete : exitCodeOf(command)
}

export async function logLevel(context: CommandContext): Promise<ExitCode> {
  const { values, positionals } = context
  if (positionals[0] === undefined) return showLogLevel(context)
  const level = parseChoice('LEVEL', positionals[0], COMMANDED_LEVELS)
  const time = parseDuration('--for', values.for)
  const client = context.connect()
  const target = values.queue || values.worker ? await resolveWorker(client, parseTarget(values)) : {}
  const order = { action: 'log_level', level, ...target, ...(time === undefined ? {} : { for: time }) } as const
  const command = await sendCommand(context, client, order)
  return command.responses.length === 0 && !isForAllProcesses(order) ? EXIT.incomplete : exitCodeOf(command)
}

async function showLogLevel({ values, connect, out }: CommandContext): Promise<ExitCode> {
  const foreign = (['queue', 'worker', 'for'] as const).find((option) => values[option] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} requires LEVEL: ${COMMANDED_LEVELS.join(', ')}`)
  const fleet = await connect().fleet()
  await out.answer({ logLevel: fleet.logLevel ?? null }, () => logLevelLines(fleet))
  return EXIT.success
}

/** Returns whether the command is stored for all processes, so that API processes and workers that start later follow it, too. */
function isForAllProcesses(order: FleetOrder): boolean {
  return order.action === 'log_level' && order.queue === undefined && order.worker === undefined
}

const QUEUE_LIMITS = [
  ...(['concurrency', 'rate', 'concurrency-per-key', 'rate-per-key'] as const),
  ...(['max-tasks', 'max-bytes', 'max-age'] as const),
]
const API_KEY_LIMITS = ['enqueue-rate', 'max-unfinished-tasks'] as const

export async function limit(context: CommandContext): Promise<ExitCode> {
  const { values } = context
  if (values['api-key-name'] !== undefined) return limitApiKey(context, values['api-key-name'])
  const queue = requireValue('--queue QUEUE or --api-key-name NAME', values.queue)
  const foreign = API_KEY_LIMITS.find((limit) => values[limit] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} requires --api-key-name`)
  if (values['concurrency-key'] !== undefined) return limitConcurrencyKey(context, queue, values['concurrency-key'])
  const { concurrency, rate, 'max-tasks': maxTasks, 'max-bytes': maxBytes, 'max-age': maxAge, burst } = values
  const { 'concurrency-per-key': concurrencyPerKey, 'rate-per-key': ratePerKey } = values
  if (QUEUE_LIMITS.every((limit) => values[limit] === undefined)) {
    throw new UsageError(
      'specify a limit: --concurrency, --rate, --concurrency-per-key, --rate-per-key, --max-tasks, --max-bytes or --max-age',
    )
  }
  if (burst !== undefined && ratePerKey === undefined) throw new UsageError('--burst requires --rate-per-key')
  const order = {
    action: 'limit',
    queue,
    ...(concurrency === undefined ? {} : { concurrency: parseConcurrency('--concurrency', concurrency) }),
    ...(rate === undefined ? {} : { rate: parseRate('--rate', rate, MAX_RATE) }),
    ...(concurrencyPerKey === undefined
      ? {}
      : { concurrencyPerKey: parseConcurrency('--concurrency-per-key', concurrencyPerKey) }),
    ...(ratePerKey === undefined ? {} : { ratePerKey: parseStartRate('--rate-per-key', ratePerKey, burst) }),
    ...(maxTasks === undefined
      ? {}
      : { maxTasks: maxTasks === 'none' ? ('none' as const) : parseCount('--max-tasks', maxTasks) }),
    ...(maxBytes === undefined ? {} : { maxBytes: parseBytes('--max-bytes', maxBytes) }),
    ...(maxAge === undefined ? {} : { maxAge: parseLimit('--max-age', maxAge) }),
  } as const
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

async function limitConcurrencyKey(context: CommandContext, queue: string, concurrencyKey: string): Promise<ExitCode> {
  const { values } = context
  const { concurrency, rate, burst } = values
  const foreign = QUEUE_LIMITS.find(
    (limit) => limit !== 'concurrency' && limit !== 'rate' && values[limit] !== undefined,
  )
  if (foreign !== undefined) throw new UsageError(`--${foreign} is a limit of a queue; remove --concurrency-key`)
  if (concurrency === undefined && rate === undefined) {
    throw new UsageError('specify a limit of the concurrency key: --concurrency or --rate')
  }
  if (burst !== undefined && rate === undefined) throw new UsageError('--burst requires --rate')
  const order = {
    action: 'limit',
    queue,
    concurrencyKey,
    // With 0, the key starts no task.
    ...(concurrency === undefined
      ? {}
      : { concurrency: concurrency === '0' ? 0 : parseConcurrency('--concurrency', concurrency) }),
    ...(rate === undefined ? {} : { rate: parseStartRate('--rate', rate, burst) }),
  } as const
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

function parseConcurrency(option: string, text: string): number | 'none' {
  return text === 'none' ? text : parseCount(option, text, MAX_CONCURRENCY)
}

/** Parses how many tasks of a concurrency key may start per period, and at once. */
function parseStartRate(option: string, text: string, burst: string | undefined) {
  const rate = parseRate(option, text, MAX_RATE)
  if (burst === undefined) return rate
  if (rate === 'none') throw new UsageError(`--burst requires a rate; ${option} is none`)
  return { ...rate, burst: parseCount('--burst', burst, MAX_RATE) }
}

async function limitApiKey(context: CommandContext, apiKeyName: string): Promise<ExitCode> {
  const { values } = context
  const { queue, 'enqueue-rate': rate, 'max-unfinished-tasks': maxTasks } = values
  const foreign = QUEUE_LIMITS.find((limit) => values[limit] !== undefined)
  if (foreign !== undefined) throw new UsageError(`--${foreign} is a limit of a queue; remove --api-key-name`)
  if (values['concurrency-key'] !== undefined) {
    throw new UsageError('specify either --api-key-name or --concurrency-key')
  }
  if (rate === undefined && maxTasks === undefined) {
    throw new UsageError('specify a limit of the API key: --enqueue-rate or --max-unfinished-tasks')
  }
  if (maxTasks !== undefined) requireValue('--queue QUEUE', queue)
  const order = {
    action: 'limit',
    ...(queue === undefined ? {} : { queue }),
    apiKeyName,
    ...(rate === undefined ? {} : { enqueueRate: parseRate('--enqueue-rate', rate, MAX_ENQUEUE_RATE) }),
    ...(maxTasks === undefined
      ? {}
      : {
          maxUnfinishedTasks: maxTasks === 'none' ? ('none' as const) : parseCount('--max-unfinished-tasks', maxTasks),
        }),
  } as const
  return exitCodeOf(await sendCommand(context, context.connect(), order))
}

/** Sends the command and prints its outcome. */
export async function sendCommand(
  { out, by }: CommandContext,
  client: Client,
  order: FleetOrder,
): Promise<CommandView> {
  const command = await client.command(order, by === undefined ? {} : { by })
  await out.answer(command, (layout) => commandLines(command, layout))
  if (command.outcome === 'pending') {
    out.remark(`some workers have not responded yet; check with: bullpen audit ${plain(command.id)} --wait 30s`)
  } else if (command.responses.length === 0 && order.action !== 'limit' && !isForAllProcesses(order)) {
    out.remark('no running worker has a pool that matches the target')
  }
  return command
}

export function exitCodeOf({ outcome }: CommandView): ExitCode {
  return outcome === 'done' ? EXIT.success : EXIT.incomplete
}
