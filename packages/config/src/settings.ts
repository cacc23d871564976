// Settings: one table for each program, read from flags, environment, file and defaults, in that order.
//
// This file decides; process-settings.ts reads the process. Every fault is collected before the error is thrown, so that one
// start shows all of them. A fault names where its value came from: a flag, a variable, a key of the file, or `config` in code.
import { BullpenError } from '@bullpen/contract'
import { nearest } from '@bullpen/contract/internal'
import type { z } from 'zod'
import { readArguments } from './arguments.ts'

export interface Setting<S extends z.ZodType = z.ZodType> {
  /** The environment variable. The flag is derived from the setting's name: `redisUrl` is `--redis-url`. */
  readonly env: string
  /** Accepts text, which is all that environments hold. Carries the default. */
  readonly schema: S
  /** What the schema accepts, as the end of the sentence "expected …". A function may look at the rejected value. */
  readonly expected: string | ((given: unknown) => string)
  /** Values are never repeated in errors. */
  readonly secret?: true
  /** One sentence for the reference and for `--help`. */
  readonly help: string
}

export type SettingsTable = Readonly<Record<string, Setting>>

export type SettingsOf<T extends SettingsTable> = { readonly [K in keyof T]: z.output<T[K]['schema']> }
/** What a program passes in code: every setting with a default may be left out. */
export type PartialSettings<T extends SettingsTable> = { readonly [K in keyof T]?: z.input<T[K]['schema']> | undefined }

/** A rule across settings. Returns what is contradictory, or undefined. */
export type SettingsRule<T extends SettingsTable> = (settings: SettingsOf<T>) => string | undefined

/** Where settings come from. */
export interface SettingsSources {
  /** Without the path of Node and of the program. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file that `--config` or BULLPEN_CONFIG names: a JSON object whose keys are names of settings. */
  readonly readFile: (path: string) => string
}

export const CONFIG_FILE_VARIABLE = 'BULLPEN_CONFIG'
/** A program ignores the variables of the other programs. */
const PROGRAMS = ['API', 'WORKER'] as const
/** Variables that only some programs read, the command line among them: no mistake in the environment of the others. */
const SHARED_VARIABLES = ['BULLPEN_ENV', 'BULLPEN_API', 'BULLPEN_KEY', 'BULLPEN_BY']

/**
 * In settings that were read from a program's sources: each value, and where it came from unless it is a default. Under an
 * enumerable symbol, so that it survives `{ ...settings, port: 1 }`; a value that differs was then set in code.
 */
const ORIGINS = Symbol.for('bullpen.settings-origins')
type Origins = Readonly<Record<string, { readonly value: unknown; readonly origin: string | undefined }>>

interface Given {
  readonly value: unknown
  /** `BULLPEN_WORKER_PORT`, `--port`, `port in bullpen.json`. */
  readonly origin: string
}

/**
 * Settings from flags, then environment, then file, then defaults; validated one by one and together; frozen.
 *
 * @throws BullpenError `invalid_configuration` that lists every unknown setting with the nearest known one, every wrong value
 * with what is accepted, and every contradiction.
 */
export function readSettings<T extends SettingsTable>(
  program: (typeof PROGRAMS)[number],
  table: T,
  rules: readonly SettingsRule<T>[],
  { argv, env, readFile }: SettingsSources,
): SettingsOf<T> {
  const flags = fromFlags(table, argv)
  const variables = fromEnvironment(program, table, env)
  const path = flags.configFile ?? env[CONFIG_FILE_VARIABLE]
  const file = path === undefined || path === '' ? { values: {}, faults: [] } : fromFile(table, path, readFile)
  const given = { ...file.values, ...variables.values, ...flags.values }
  const faults = [...flags.faults, ...variables.faults, ...file.faults]
  const settings = settle(table, rules, given, faults)
  const origins: Origins = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, { value, origin: given[name]?.origin }]),
  )
  return Object.freeze({ ...settings, [ORIGINS]: origins })
}

/** As {@link readSettings}, for settings that a program passes as an object. */
export function checkSettings<T extends SettingsTable>(
  table: T,
  rules: readonly SettingsRule<T>[],
  config: PartialSettings<T>,
): SettingsOf<T> {
  const given: Record<string, Given> = {}
  for (const [name, { env }] of Object.entries(table)) {
    const value: unknown = config[name]
    if (value === undefined) continue
    const origin = originOf(config, name)
    given[name] = { value, origin: origin?.startsWith('config.') ? `${origin} (${env})` : (origin ?? env) }
  }
  return Object.freeze(settle(table, rules, given, unknownNames(Object.keys(config), Object.keys(table), 'config.')))
}

/**
 * Where the value of a setting came from: a flag, a variable or a file, `config.NAME` when it was set in code, and undefined for
 * a default.
 */
export function originOf(config: object, name: string): string | undefined {
  const values = config as Readonly<Record<string | symbol, unknown>>
  const origins = values[ORIGINS] as Origins | undefined
  const value = values[name]
  if (value === undefined) return undefined
  const known = origins?.[name]
  return known !== undefined && Object.is(known.value, value) ? known.origin : `config.${name}`
}

/** The flag of a setting: `redisUrl` is `--redis-url`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** The error for settings that can't be used. */
export function invalidConfiguration(faults: readonly string[]): BullpenError {
  const [only] = faults
  const text = faults.length === 1 ? ` ${only}` : `\n${faults.map((fault) => `  - ${fault}`).join('\n')}`
  return new BullpenError('invalid_configuration', `invalid configuration:${text}`)
}

/** Values, and where each came from, by the settings' names. */
interface Read {
  readonly values: Readonly<Record<string, Given>>
  readonly faults: readonly string[]
}

function settle<T extends SettingsTable>(
  table: T,
  rules: readonly SettingsRule<T>[],
  given: Readonly<Record<string, Given>>,
  faults: readonly string[],
): SettingsOf<T> {
  const all = [...faults]
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(table)) {
    const parsed = setting.schema.safeParse(given[name]?.value)
    if (parsed.success) values[name] = parsed.data
    else all.push(wrongValue(setting, given[name]))
  }
  // Every key of the table has just been parsed by its own schema, or a fault says why not.
  const settings = values as SettingsOf<T>
  if (all.length === 0) all.push(...rules.map((rule) => rule(settings)).filter((fault) => fault !== undefined))
  if (all.length > 0) throw invalidConfiguration(all)
  return settings
}

function wrongValue({ env, expected, secret }: Setting, given: Given | undefined): string {
  const accepted = typeof expected === 'string' ? expected : expected(given?.value)
  if (given === undefined) return `${env} is missing; expected ${accepted}`
  if (secret) return `${given.origin} is not valid; expected ${accepted}`
  const text = JSON.stringify(given.value) ?? String(given.value)
  return `${given.origin} is ${text.length > 100 ? `${text.slice(0, 100)}…` : text}; expected ${accepted}`
}

function fromFlags(table: SettingsTable, argv: readonly string[]): Read & { readonly configFile: string | undefined } {
  const names = new Map([
    ['config', 'config'],
    ...Object.keys(table).map((name) => [flagOf(name).slice(2), name] as const),
  ])
  const values: Record<string, Given> = {}
  const faults: string[] = []
  for (const { flag, value } of readArguments([...names.keys()], argv)) {
    const name = names.get(flag ?? '')
    if (flag === undefined)
      faults.push(`unexpected argument ${JSON.stringify(value)}; settings are given as --name value`)
    else if (name === undefined) faults.push(`--${flag} is not a setting${didYouMean(`--${flag}`, flagsOf(names))}`)
    else if (value === undefined) faults.push(`--${flag} has no value`)
    else if (name in values) faults.push(`--${flag} is given twice`)
    else values[name] = { value, origin: `--${flag}` }
  }
  const { config, ...rest } = values
  return { values: rest, faults, configFile: config === undefined ? undefined : String(config.value) }
}

function flagsOf(names: ReadonlyMap<string, string>): string[] {
  return [...names.keys()].map((flag) => `--${flag}`)
}

function fromEnvironment(program: (typeof PROGRAMS)[number], table: SettingsTable, env: SettingsSources['env']): Read {
  const values: Record<string, Given> = {}
  for (const [name, { env: variable }] of Object.entries(table)) {
    // Compose files and CI systems write an empty variable for "unset".
    if (env[variable] !== undefined && env[variable] !== '') values[name] = { value: env[variable], origin: variable }
  }
  const known = Object.values(table).map((setting) => setting.env)
  const foreign = PROGRAMS.filter((other) => other !== program).map((other) => `BULLPEN_${other}_`)
  const faults = Object.keys(env)
    .filter((variable) => variable.startsWith('BULLPEN_') && !foreign.some((prefix) => variable.startsWith(prefix)))
    .filter((variable) => ![...known, ...SHARED_VARIABLES, CONFIG_FILE_VARIABLE].includes(variable))
    .map((variable) => `${variable} is not a setting${didYouMean(variable, known)}`)
  return { values, faults }
}

function fromFile(table: SettingsTable, path: string, readFile: SettingsSources['readFile']): Read {
  let parsed: unknown
  try {
    parsed = JSON.parse(readFile(path))
  } catch (cause) {
    throw invalidConfiguration([`the file ${path} can't be read as JSON: ${String(cause)}`])
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalidConfiguration([`the file ${path} does not hold a JSON object of settings`])
  }
  const entries = Object.entries(parsed).map(
    ([name, value]) => [name, { value, origin: `${name} in ${path}` }] as const,
  )
  const faults = unknownNames(Object.keys(parsed), Object.keys(table), `${path}: `)
  return { values: Object.fromEntries(entries), faults }
}

function unknownNames(given: readonly string[], known: readonly string[], place: string): string[] {
  return given
    .filter((name) => !known.includes(name))
    .map((name) => `${place}${name} is not a setting${didYouMean(name, known)}`)
}

function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}
