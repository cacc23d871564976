// Generates the help texts from the tables of commands and options.
import { COMMON_OPTIONS, OPTIONS, type OptionHelp, type OptionName, spelling } from './arguments/options.ts'
import { COMMAND_NAMES, type CommandName, commandOf } from './commands/command-table.ts'
import { EXIT_MEANINGS } from './exit-codes.ts'

export function generalHelp(): string {
  return sections(
    ['usage: bullpen COMMAND [ARGUMENT]… [OPTION]…'],
    [
      "Enqueue, show, list and cancel tasks, and control schedules and the fleet. All commands use Bullpen's HTTP API, except",
      'doctor --bullmq, which reads Redis.',
    ],
    ['commands:', ...aligned(COMMAND_NAMES.map((name) => [name, commandOf(name).summary]))],
    ['options that all commands share:', ...optionLines(COMMON_OPTIONS)],
    ['exit codes:', ...aligned(Object.entries(EXIT_MEANINGS))],
    ['examples:', ...COMMAND_NAMES.flatMap((name) => commandOf(name).examples.slice(0, 1)).map(indented)],
  )
}

export function commandHelp(name: CommandName): string {
  const { usage, description, options, optionHelp, examples } = commandOf(name)
  return sections(
    [['usage: bullpen', name, usage, '[OPTION]…'].filter(Boolean).join(' ')],
    description,
    options.length === 0 ? [] : ['options:', ...optionLines(options, optionHelp)],
    ["Run 'bullpen help' to see the exit codes and the options that all commands share."],
    ['examples:', ...examples.map(indented)],
  )
}

const sections = (...parts: readonly (readonly string[])[]): string =>
  `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`

function optionLines(names: readonly OptionName[], overrides: Partial<Record<OptionName, OptionHelp>> = {}): string[] {
  const helpOf = (name: OptionName): OptionHelp => overrides[name] ?? OPTIONS[name]
  return aligned(names.map((name) => [spelling(name, helpOf(name)), helpOf(name).help]))
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => indented(`${left.padEnd(width)}  ${right}`))
}

const indented = (line: string): string => `  ${line}`
