// Configuration: one table of settings, read from the command line, the environment and a file, in that order.
import { BullpenError } from '@bullpen/contract'
import { nearest } from '@bullpen/contract/internal'
import { z } from 'zod'

export interface Setting<S extends z.ZodType = z.ZodType> {
  /** The environment variable; the command line's flag is made from the setting's own name. */
  readonly env: string
  /** Accepts text, since that is what environments hold; carries the default. */
  readonly schema: S
  /** One sentence for the configuration table. */
  readonly help: string
}

export type SettingsTable = Readonly<Record<string, Setting>>

export type SettingsOf<T extends SettingsTable> = { readonly [K in keyof T]: z.output<T[K]['schema']> }
/** What a program passes: every setting with a default may be left out. */
export type PartialSettings<T extends SettingsTable> = { readonly [K in keyof T]?: z.input<T[K]['schema']> | undefined }

/** A rule across settings: what is contradictory, or undefined. */
export type SettingsRule<T extends SettingsTable> = (settings: SettingsOf<T>) => string | undefined

/** Where settings come from. The caller reads the process; this file only decides. */
export interface SettingsSources {
  /** Without the program's own two. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file that `--config` or BULLPEN_CONFIG names: a JSON object with the settings' names as keys. */
  readonly readFile: (path: string) => string
}

const CONFIG_FILE = 'BULLPEN_CONFIG'
/** Variables of one app are no business of another's; those that no app has are somebody's mistake. */
const APPS = ['API', 'WORKER'] as const
/** Read by the client, the scripts and the API; a worker that finds them in its environment is not misconfigured. */
const SHARED_VARIABLES = ['BULLPEN_KEY', 'BULLPEN_ENV']

/**
 * Settings from flags, then environment, then file, then defaults; validated one by one and together; frozen.
 *
 * @throws BullpenError `invalid_configuration` that lists every unknown setting with the nearest known one, every wrong
 * value with what is right, and every contradiction.
 */
export function readSettings<T extends SettingsTable>(
  app: (typeof APPS)[number],
  table: T,
  rules: readonly SettingsRule<T>[],
  sources: SettingsSources,
): SettingsOf<T> {
  const { values: flags, faults } = readFlags(table, sources.argv)
  const environment = readEnvironment(app, table, sources.env)
  const path = flags['config'] ?? sources.env[CONFIG_FILE]
  const file = typeof path === 'string' ? readFile(path, sources.readFile) : {}
  const { config: _, ...fromFlags } = flags
  const known = Object.keys(table)
  faults.push(...environment.faults)
  faults.push(...unknownKeys(Object.keys(file), known).map((fault) => `${String(path)}: ${fault}`))
  return settle(table, rules, { ...file, ...environment.values, ...fromFlags }, faults)
}

/** As {@link readSettings}, for settings that a program passes as an object. */
export function checkSettings<T extends SettingsTable>(
  table: T,
  rules: readonly SettingsRule<T>[],
  given: PartialSettings<T>,
): SettingsOf<T> {
  return settle(table, rules, given, unknownKeys(Object.keys(given), Object.keys(table)))
}

/** The flag of a setting: `redisUrl` is `--redis-url`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** A whole number, as such or as digits: neither '0x10', ' ' nor true, all of which JavaScript would make one of. */
export function wholeNumber(least: number, most: number) {
  const message = `it is a whole number from ${least} to ${most}`
  const digits = z
    .string()
    .regex(/^-?\d{1,15}$/, message)
    .transform(Number)
  return z.union([z.number(), digits], message).pipe(z.number().int(message).min(least, message).max(most, message))
}

type Values = Record<string, unknown>

function settle<T extends SettingsTable>(
  table: T,
  rules: readonly SettingsRule<T>[],
  raw: Readonly<Values>,
  faults: readonly string[],
): SettingsOf<T> {
  const all = [...faults]
  const values: Values = {}
  for (const [name, setting] of Object.entries(table)) {
    const parsed = setting.schema.safeParse(raw[name])
    if (parsed.success) values[name] = parsed.data
    else all.push(...parsed.error.issues.map((issue) => `${name} (${setting.env}, ${flagOf(name)}): ${issue.message}`))
  }
  // Every key of the table has just been parsed by its own schema, or a fault says why not.
  const settings = Object.freeze(values) as SettingsOf<T>
  if (all.length === 0) all.push(...rules.map((rule) => rule(settings)).filter((fault) => fault !== undefined))
  if (all.length > 0) {
    throw new BullpenError(
      'invalid_configuration',
      `the configuration is not right:\n${all.map((fault) => `  - ${fault}`).join('\n')}`,
    )
  }
  return settings
}

function readFlags(table: SettingsTable, argv: readonly string[]): { values: Values; faults: string[] } {
  const byFlag = new Map([['--config', 'config'], ...Object.keys(table).map((name) => [flagOf(name), name] as const)])
  const values: Values = {}
  const faults: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const [flag = '', inline] = split(argv[i] ?? '')
    const name = byFlag.get(flag)
    const value = inline ?? argv[i + 1]
    if (name === undefined) {
      const hint = nearest(flag, [...byFlag.keys()])
      faults.push(`${flag} is not a setting${hint === undefined ? '' : `; did you mean ${hint}?`}`)
      if (inline === undefined && value !== undefined && !value.startsWith('--')) i++
    } else if (name in values) {
      faults.push(`${flag} is given twice`)
      if (inline === undefined) i++
    } else if (value === undefined || (inline === undefined && value.startsWith('--'))) {
      faults.push(`${flag} has no value`)
    } else {
      values[name] = value
      if (inline === undefined) i++
    }
  }
  return { values, faults }
}

function split(argument: string): readonly [string, string | undefined] {
  const equals = argument.indexOf('=')
  return argument.startsWith('--') && equals > 0
    ? [argument.slice(0, equals), argument.slice(equals + 1)]
    : [argument, undefined]
}

function readEnvironment(app: (typeof APPS)[number], table: SettingsTable, env: SettingsSources['env']) {
  const values: Values = {}
  for (const [name, { env: variable }] of Object.entries(table)) {
    // An empty variable is how compose files and CI say "unset".
    if (env[variable] !== undefined && env[variable] !== '') values[name] = env[variable]
  }
  const known = Object.values(table).map((setting) => setting.env)
  const foreign = APPS.filter((other) => other !== app).map((other) => `BULLPEN_${other}_`)
  const faults = Object.keys(env)
    .filter((variable) => variable.startsWith('BULLPEN_') && !foreign.some((prefix) => variable.startsWith(prefix)))
    .filter((variable) => ![...known, ...SHARED_VARIABLES, CONFIG_FILE].includes(variable))
    .map((variable) => `${variable} is not a setting${hint(variable, known)}`)
  return { values, faults }
}

function unknownKeys(given: readonly string[], known: readonly string[]): string[] {
  return given.filter((name) => !known.includes(name)).map((name) => `${name} is not a setting${hint(name, known)}`)
}

function hint(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}

function readFile(path: string, read: (path: string) => string): Values {
  try {
    const parsed: unknown = JSON.parse(read(path))
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return { ...parsed }
  } catch (cause) {
    throw new BullpenError('invalid_configuration', `the configuration file ${path} can't be read: ${String(cause)}`, {
      cause,
    })
  }
  throw new BullpenError('invalid_configuration', `the configuration file ${path} does not hold a JSON object`)
}
