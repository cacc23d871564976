// Reads the command line: which command, with which arguments and options.
import { parseArgs } from 'node:util'
import { nearest } from '@bullpen/contract/internal'
import { COMMAND_NAMES, type CommandName, commandOf } from '../commands/command-table.ts'
import { COMMON, OPTIONS, type OptionName, spelling } from './options.ts'
import { UsageError } from './usage-error.ts'

type Parsed = ReturnType<typeof parsed>

export interface CommandLine {
  /** Undefined when none is named: with --help or --version alone. */
  readonly command: CommandName | undefined
  readonly positionals: readonly string[]
  readonly values: Parsed['values']
}

/** @throws UsageError for what is unknown, missing or too much; it never repeats an option's value. */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const word = parseArgs({ args: [...argv], options: OPTIONS, strict: false, allowPositionals: true }).positionals[0]
  const known = COMMAND_NAMES.find((name) => name === word)
  const { values, positionals, tokens } = parsed(argv, known)
  if (word === undefined) {
    if (values.help || values.version) return { command: undefined, positionals, values }
    throw new UsageError('no command')
  }
  const command = commandNamed(word)
  for (const token of tokens) if (token.kind === 'option') allowed(command, token.name)
  const rest = positionals.slice(1)
  if (!values.help && !values.version) counted(command, rest)
  return { command, positionals: rest, values }
}

/** @throws UsageError with the nearest name. */
export function commandNamed(word: string): CommandName {
  const known = COMMAND_NAMES.find((name) => name === word)
  if (known !== undefined) return known
  throw new UsageError(
    `there is no command '${word}'${meant(word, COMMAND_NAMES)}; the commands are ${COMMAND_NAMES.join(', ')}`,
  )
}

function parsed(argv: readonly string[], command: CommandName | undefined) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: true, tokens: true })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))) throw error
    const [, unknown] = /^Unknown option '(.+?)'/.exec(error.message) ?? []
    if (unknown === undefined) throw new UsageError(error.message.split('\n')[0])
    const words = command === undefined ? Object.keys(OPTIONS) : [...commandOf(command).options, ...COMMON]
    const known = words.map((name) => `--${name}`)
    throw new UsageError(
      unknown.startsWith('--')
        ? `there is no option ${unknown}${meant(unknown, known)}`
        : `there is no option ${unknown}; an argument that begins with - comes after --`,
    )
  }
}

function allowed(command: CommandName, option: string): void {
  const names: readonly string[] = [...commandOf(command).options, ...COMMON]
  if (names.includes(option)) return
  const takes = commandOf(command).options.map((name: OptionName) => spelling(name).split(' ')[0])
  throw new UsageError(`${command} takes no --${option}${takes.length === 0 ? '' : `; it takes ${takes.join(', ')}`}`)
}

function counted(command: CommandName, given: readonly string[]): void {
  const { takes, usage } = commandOf(command)
  const [least, most] = takes
  if (given.length < least) throw new UsageError(`${command} needs ${usage}`)
  if (given.length > most) throw new UsageError(`'${given[most]}' is too much: bullpen ${command} ${usage}`)
  if (given.includes('')) throw new UsageError(`an argument of ${command} is empty`)
}

export function meant(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}
