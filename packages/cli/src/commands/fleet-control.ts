// bullpen pause, resume, stop, resize and limit: one command each, and what the workers made of it.
import type { Client, FleetOrder } from '@bullpen/client'
import type { CommandView } from '@bullpen/contract'
import { countIn, presentIn, rateIn } from '../arguments/option-values.ts'
import { resolved, targetIn, workerIn } from '../arguments/target.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { commandLines } from '../output/command-text.ts'
import { plain } from '../output/format.ts'
import type { CommandContext } from './command-context.ts'

export function pause(desk: CommandContext): Promise<ExitCode> {
  return steer(desk, 'pause')
}

export function resume(desk: CommandContext): Promise<ExitCode> {
  return steer(desk, 'resume')
}

async function steer(desk: CommandContext, action: 'pause' | 'resume'): Promise<ExitCode> {
  const target = targetIn(desk.values)
  const client = desk.client()
  return exitCodeOf(await given(desk, client, { action, ...(await resolved(client, target)) }))
}

export async function stop(desk: CommandContext): Promise<ExitCode> {
  const slot = workerIn(desk.positionals[0] ?? '')
  const client = desk.client()
  const how = desk.values.hard ? 'hard' : 'wait'
  return exitCodeOf(await given(desk, client, { action: 'stop', ...(await resolved(client, slot)), how }))
}

export async function resize(desk: CommandContext): Promise<ExitCode> {
  const { values } = desk
  const queue = presentIn('--queue QUEUE', values.queue)
  const concurrency = countIn('--concurrency', presentIn('--concurrency N', values.concurrency))
  const client = desk.client()
  const target = await resolved(client, { ...targetIn(values), queue })
  const command = await given(desk, client, { action: 'resize', ...target, concurrency })
  // It sets nothing for who comes later: with nobody there, nothing is done.
  return command.answers.length === 0 ? EXIT.otherwise : exitCodeOf(command)
}

export async function limit(desk: CommandContext): Promise<ExitCode> {
  const { values } = desk
  const queue = presentIn('--queue QUEUE', values.queue)
  const { concurrency, rate } = values
  if (concurrency === undefined && rate === undefined) {
    throw new UsageError('it is not said what: --concurrency N, --rate RATE, or both')
  }
  const order = {
    action: 'limit',
    queue,
    ...(concurrency === undefined
      ? {}
      : { concurrency: concurrency === 'none' ? ('none' as const) : countIn('--concurrency', concurrency) }),
    ...(rate === undefined ? {} : { rate: rateIn(rate) }),
  } as const
  return exitCodeOf(await given(desk, desk.client(), order))
}

/** Gives the command, and shows what came of it. */
export async function given({ out, by }: CommandContext, client: Client, order: FleetOrder): Promise<CommandView> {
  const command = await client.command(order, by === undefined ? {} : { by })
  await out.answer(command, (look) => commandLines(command, look))
  if (command.outcome === 'pending') {
    out.remark(`not all have answered yet: bullpen commands ${plain(command.id)} --wait 30s`)
  } else if (command.answers.length === 0 && order.action !== 'limit') {
    out.remark('no worker works it now')
  }
  return command
}

export function exitCodeOf({ outcome }: CommandView): ExitCode {
  return outcome === 'done' ? EXIT.done : EXIT.otherwise
}
