// Runs one of the actions of a command, such as show in `bullpen groups show ID`.
import { parseChoice } from '../arguments/option-values.ts'
import { COMMON_OPTIONS, type OptionName } from '../arguments/options.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { CommandContext } from './command-context.ts'
import type { CommandName } from './command-table.ts'

export interface Action {
  /** The options that the action accepts, in addition to those that every command accepts. */
  readonly options: readonly OptionName[]
  /** The arguments after the action, of which the last one may be optional. */
  readonly usage: '' | 'ID' | 'NAME' | 'PIPELINE [INPUT | -]'
  readonly run: (context: CommandContext, subject: string, input: string | undefined) => Promise<ExitCode>
}

/** Runs the action that the first argument names, or else `list`. @throws UsageError if an argument or an option does not belong to it. */
export async function runAction<N extends string>(
  command: CommandName,
  actions: Readonly<Record<N, Action>>,
  context: CommandContext,
): Promise<ExitCode> {
  const [word = 'list', subject, input] = context.positionals
  const { usage, options, run } = actions[parseChoice('ACTION', word, Object.keys(actions) as N[])]
  const expected = `expected bullpen ${command} ${word} ${usage}`.trimEnd()
  if (usage !== '' && subject === undefined) throw new UsageError(`missing argument; ${expected}`)
  const extraArgument = usage === '' ? subject : usage === 'PIPELINE [INPUT | -]' ? undefined : input
  if (extraArgument !== undefined) throw new UsageError(`unexpected argument '${extraArgument}'; ${expected}`)
  const accepted: readonly string[] = [...options, ...COMMON_OPTIONS]
  const extra = Object.keys(context.values).find((option) => !accepted.includes(option))
  if (extra !== undefined) throw new UsageError(`'bullpen ${command} ${word}' does not accept --${extra}`)
  return await run(context, subject ?? '', input)
}
