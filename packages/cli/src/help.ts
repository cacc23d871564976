// The help texts, made of the tables.

import { COMMON, OPTIONS, type OptionName, type OptionWords, spelling } from './arguments/options.ts'
import { COMMAND_NAMES, type CommandName, commandOf } from './commands/command-table.ts'
import { EXIT_MEANINGS } from './exit-codes.ts'

export function generalHelp(): string {
  return sections(
    ['usage: bullpen COMMAND [ARGUMENT]… [OPTION]…'],
    ['Enqueues, shows, lists and cancels tasks, and steers the fleet that works them, over the HTTP API of Bullpen.'],
    ['commands:', ...aligned(COMMAND_NAMES.map((name) => [name, commandOf(name).summary]))],
    ['options of every command:', ...optionLines(COMMON)],
    ['exit codes:', ...aligned(Object.entries(EXIT_MEANINGS))],
    ['examples:', ...COMMAND_NAMES.flatMap((name) => commandOf(name).examples.slice(0, 1)).map(indented)],
  )
}

export function commandHelp(name: CommandName): string {
  const { usage, about, options, says, examples } = commandOf(name)
  return sections(
    [['usage: bullpen', name, usage, '[OPTION]…'].filter(Boolean).join(' ')],
    about,
    options.length === 0 ? [] : ['options:', ...optionLines(options, says)],
    ["'bullpen help' has the options of every command and the exit codes."],
    ['examples:', ...examples.map(indented)],
  )
}

const sections = (...parts: readonly (readonly string[])[]): string =>
  `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`

function optionLines(names: readonly OptionName[], says: Partial<Record<OptionName, OptionWords>> = {}): string[] {
  const words = (name: OptionName): OptionWords => says[name] ?? OPTIONS[name]
  return aligned(names.map((name) => [spelling(name, words(name)), words(name).help]))
}

function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => indented(`${left.padEnd(width)}  ${right}`))
}

const indented = (line: string): string => `  ${line}`
