// bullpen audit: shows the commands that were sent to the fleet, or a single one.
import { formatDuration } from '@bullpen/contract'
import { MAX_WAIT_S, PAGINATION } from '@bullpen/contract/internal'
import { parseCount, parseDuration } from '../../arguments/option-values.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import { auditLines, commandLines } from '../../output/fleet/command-text.ts'
import { plain } from '../../output/format.ts'
import type { CommandContext } from '../command-context.ts'
import { exitCodeOf } from './fleet-control.ts'

export async function audit({ positionals: [id], values, connect, out }: CommandContext): Promise<ExitCode> {
  const wait = parseDuration('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const limit = values.limit === undefined ? undefined : parseCount('--limit', values.limit, PAGINATION.max)
  if (id === undefined && wait !== undefined) throw new UsageError('--wait requires the ID of a command')
  if (id !== undefined && limit !== undefined) throw new UsageError('--limit cannot be combined with an ID')
  const client = connect()
  if (id === undefined) {
    const commands = await client.commands(limit === undefined ? {} : { limit })
    await out.answer({ commands }, (layout) => auditLines(commands, layout))
    if (commands.length === 0) out.remark('no commands have been sent')
    return EXIT.success
  }
  const command = await client.commandById(id, wait === undefined ? {} : { wait })
  await out.answer(command, (layout) => [`by ${plain(command.by)}, ${command.at}`, ...commandLines(command, layout)])
  return wait === undefined ? EXIT.success : exitCodeOf(command)
}
