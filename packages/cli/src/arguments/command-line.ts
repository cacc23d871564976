// Parses the command line into a command, its arguments and its options.
import { parseArgs } from 'node:util'
import { nearest, repeatedOption, suggestion } from '@bullpen/contract/internal'
import { COMMAND_NAMES, type CommandName, commandOf } from '../commands/command-table.ts'
import { COMMON_OPTIONS, OPTIONS, type OptionName, spelling } from './options.ts'
import { UsageError } from './usage-error.ts'

export interface CommandLine {
  /** Undefined if --help or --version is given without a command. */
  readonly command: CommandName | undefined
  readonly positionals: readonly string[]
  readonly values: ReturnType<typeof parseStrictly>['values']
}

/**
 * Parses and checks the command line. @throws UsageError if anything is unknown, missing, superfluous or given twice. The message never
 * contains the value of an option.
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const [word] = parseArgs({ args: [...argv], options: OPTIONS, strict: false, allowPositionals: true }).positionals
  const { values, positionals, tokens } = parseStrictly(
    argv,
    COMMAND_NAMES.find((name) => name === word),
  )
  if (word === undefined) {
    if (values.help || values.version) return { command: undefined, positionals, values }
    throw new UsageError('specify a command')
  }
  const command = commandNamed(word)
  for (const token of tokens) if (token.kind === 'option') checkOption(command, token.name)
  const repeated = repeatedOption(tokens, OPTIONS)
  if (repeated !== undefined) throw new UsageError(`--${repeated} is specified twice`)
  const rest = positionals.slice(1)
  if (!values.help && !values.version) checkArguments(command, rest)
  return { command, positionals: rest, values }
}

/** Returns the command with this name. @throws UsageError that suggests the nearest command. */
export function commandNamed(word: string): CommandName {
  const known = COMMAND_NAMES.find((name) => name === word)
  if (known !== undefined) return known
  throw new UsageError(`unknown command '${word}'${suggestion(word, COMMAND_NAMES)}`)
}

function parseStrictly(argv: readonly string[], command: CommandName | undefined) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: true, tokens: true })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))) throw error
    const [, unknown] = /^Unknown option '(.+?)'/.exec(error.message) ?? []
    if (unknown === undefined) throw new UsageError(valueProblem(error.message))
    if (!unknown.startsWith('--')) {
      throw new UsageError(`unknown option '${unknown}'; put -- before an argument that begins with -`)
    }
    const names = command === undefined ? Object.keys(OPTIONS) : [...commandOf(command).options, ...COMMON_OPTIONS]
    // The names are compared without their dashes, which would make all short options look similar to each other.
    const known = nearest(unknown.slice(2), names)
    throw new UsageError(`unknown option '${unknown}'${known === undefined ? '' : `; did you mean --${known}?`}`)
  }
}

/** Rewrites a `parseArgs` error about an option's value in the terms that the help uses. */
function valueProblem(message: string): string {
  const [, name] = /--([a-z-]+)/.exec(message) ?? []
  const option = Object.keys(OPTIONS).find((known): known is OptionName => known === name)
  if (option === undefined) return message
  if (message.includes('does not take an argument')) return `--${option} does not take a value`
  const hint = message.includes('ambiguous') ? `; write --${option}=VALUE if the value begins with -` : ''
  return `--${option} requires a value: ${spelling(option)}${hint}`
}

function checkOption(command: CommandName, option: string): void {
  const names: readonly string[] = [...commandOf(command).options, ...COMMON_OPTIONS]
  if (names.includes(option)) return
  const accepted = commandOf(command).options.map((name: OptionName) => spelling(name).split(' ')[0])
  const expected = accepted.length === 0 ? '' : `; expected ${accepted.join(', ')}`
  throw new UsageError(`'bullpen ${command}' does not accept --${option}${expected}`)
}

function checkArguments(command: CommandName, given: readonly string[]): void {
  const { arguments: accepted = { min: 0, max: 0 }, usage } = commandOf(command)
  const expected = `expected bullpen ${command} ${usage}`.trimEnd()
  if (given.length < accepted.min) throw new UsageError(`missing argument; ${expected}`)
  if (given.length > accepted.max) throw new UsageError(`unexpected argument '${given[accepted.max]}'; ${expected}`)
  if (given.includes('')) throw new UsageError(`an argument is empty; ${expected}`)
}
