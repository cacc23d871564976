// bullpen pause, resume, stop, resize, breaker and log-level: each sends one command and prints the workers' responses.
import type { Client, FleetOrder } from '@bullpen/client'
import type { CommandView } from '@bullpen/contract'
import { BREAKER_MODES, COMMANDED_LEVELS, MAX_CONCURRENCY } from '@bullpen/contract/internal'
import {
  parseChoice,
  parseCount,
  parseDuration,
  requireValue,
  withoutUndefined,
} from '../../arguments/option-values.ts'
import { parseSlot, parseTarget, resolveWorker } from '../../arguments/target.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { commandLines } from '../../output/fleet/command-text.ts'
import { breakerLines, logLevelLines } from '../../output/fleet/fleet-text.ts'
import { plain } from '../../output/format.ts'
import type { CommandContext } from '../command-context.ts'

export function sendToTarget(action: 'pause' | 'resume') {
  return async (context: CommandContext): Promise<ExitCode> => {
    const target = parseTarget(context.values)
    const client = context.connect()
    return exitCodeOf(await sendCommand(context, client, { action, ...(await resolveWorker(client, target)) }))
  }
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

export async function breaker(context: CommandContext): Promise<ExitCode> {
  const { values, positionals, connect, out } = context
  const [service, to] = positionals
  if (service === undefined) {
    const { now, queues } = await connect().fleet(values.queue ? { queue: values.queue } : {})
    const shown = queues.map(({ queue, breakers = [] }) => ({ queue, breakers }))
    await out.answer({ now, queues: shown }, (layout) => breakerLines({ now, queues }, layout))
    return EXIT.success
  }
  if (to === undefined)
    throw new UsageError(`SERVICE requires a state, such as ${service} open: ${BREAKER_MODES.join(', ')}`)
  const queue = requireValue('--queue QUEUE', values.queue)
  const mode = parseChoice('STATE', to, BREAKER_MODES)
  return exitCodeOf(await sendCommand(context, connect(), { action: 'breaker', queue, service, to: mode }))
}

export async function logLevel(context: CommandContext): Promise<ExitCode> {
  const { values, positionals } = context
  if (positionals[0] === undefined) return showLogLevel(context)
  const level = parseChoice('LEVEL', positionals[0], COMMANDED_LEVELS)
  const time = parseDuration('--for', values.for)
  const client = context.connect()
  const target = values.queue || values.worker ? await resolveWorker(client, parseTarget(values)) : {}
  const order = withoutUndefined({ action: 'log_level', level, ...target, for: time })
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

/** Returns whether the command takes effect even if there is no worker to carry it out. */
function isStored(order: FleetOrder): boolean {
  return order.action === 'limit' || order.action === 'breaker' || isForAllProcesses(order)
}

/** Sends the command and prints its outcome. */
export async function sendCommand(
  { out, by }: CommandContext,
  client: Client,
  order: FleetOrder,
): Promise<CommandView> {
  const command = await client.command(order, withoutUndefined({ by }))
  await out.answer(command, (layout) => commandLines(command, layout))
  if (command.outcome === 'pending') {
    out.remark(`some workers have not responded yet; check with: bullpen audit ${plain(command.id)} --wait 30s`)
  } else if (command.responses.length === 0 && !isStored(order)) {
    out.remark('no running worker has a pool that matches the target')
  }
  return command
}

export function exitCodeOf({ outcome }: CommandView): ExitCode {
  return outcome === 'done' ? EXIT.success : EXIT.incomplete
}
