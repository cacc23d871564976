// bullpen commands: the audit of commands to the fleet, or one of them.
import { formatDuration } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { countIn, durationIn } from '../arguments/option-values.ts'
import { UsageError } from '../arguments/usage-error.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { auditLines, commandLines } from '../output/command-text.ts'
import { plain } from '../output/format.ts'
import type { CommandContext } from './command-context.ts'
import { exitCodeOf } from './fleet-control.ts'

export async function commands({ positionals: [id], values, client, out }: CommandContext): Promise<ExitCode> {
  const wait = durationIn('--wait', values.wait, formatDuration(MAX_WAIT_S * 1_000))
  const limit = values.limit === undefined ? undefined : countIn('--limit', values.limit)
  if (id === undefined && wait !== undefined) throw new UsageError('--wait is for one command: bullpen commands ID')
  if (id !== undefined && limit !== undefined) throw new UsageError('--limit is for the list, without an ID')
  if (id === undefined) {
    const newest = await client().commands(limit === undefined ? {} : { limit })
    await out.answer({ commands: newest }, (look) => auditLines(newest, look))
    return EXIT.done
  }
  const command = await client().commandById(id, wait === undefined ? {} : { wait })
  await out.answer(command, (look) => [`by ${plain(command.by)}, ${command.at}`, ...commandLines(command, look)])
  return wait === undefined ? EXIT.done : exitCodeOf(command)
}
