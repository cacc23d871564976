// Reads and validates settings. Each program has one table of settings, whose values come from flags, the environment, a file and
// defaults, in that order of precedence.
//
// This file contains the rules, and process-settings.ts applies them to the running process. All faults are collected before the
// error is thrown, so that a single start reports every one of them. Each fault names the origin of its value: a flag, a variable,
// a key in the file, or `config` in code.
import { BullpenError } from '@bullpen/contract'
import { nearest } from '@bullpen/contract/internal'
import type { z } from 'zod'
import { readArguments } from './arguments.ts'
import { jsonSyntaxError } from './json-syntax.ts'

export interface Setting<S extends z.ZodType = z.ZodType> {
  /** The environment variable. The flag is derived from the setting's name: `redisUrl` is `--redis-url`. */
  readonly env: string
  /**
   * The schema of the value. It must accept a string, because environment variables are always strings, and it includes the
   * default.
   */
  readonly schema: S
  /** What the schema accepts, as the end of the sentence "expected …". A function receives the rejected value. */
  readonly expected: string | ((given: unknown) => string)
  /** If true, error messages never contain the value. */
  readonly secret?: true
  /** The description of the setting in the reference and in `--help`. */
  readonly help: string
}

export type SettingsTable = Readonly<Record<string, Setting>>

export type SettingsOf<T extends SettingsTable> = { readonly [K in keyof T]: z.output<T[K]['schema']> }
/** The settings as a program passes them in code. Each setting is optional. */
export type PartialSettings<T extends SettingsTable> = { readonly [K in keyof T]?: z.input<T[K]['schema']> | undefined }

/** A rule that involves several settings. Returns a description of the contradiction, or undefined if there is none. */
export type SettingsRule<T extends SettingsTable> = (settings: SettingsOf<T>) => string | undefined

/** Where settings come from. */
export interface SettingsSources {
  /** The arguments without the paths of Node and of the program. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file that `--config` or BULLPEN_CONFIG names. It contains a JSON object whose keys are the names of settings. */
  readonly readFile: (path: string) => string
}

export const CONFIG_FILE_VARIABLE = 'BULLPEN_CONFIG'
/** A program ignores the variables of the other programs. */
const PROGRAMS = ['API', 'WORKER'] as const
/**
 * Variables that only some programs read, such as those of the CLI. They are not reported as mistakes when other programs see
 * them.
 */
const SHARED_VARIABLES = ['BULLPEN_ENV', 'BULLPEN_API', 'BULLPEN_KEY', 'BULLPEN_BY']

/**
 * Settings that were read from flags, the environment or a file also record where each value came from (undefined for a default).
 * The record is kept under an enumerable symbol, so that it survives `{ ...settings, port: 1 }`. If a setting's current value
 * differs from the recorded one, it was set in code.
 */
const ORIGINS = Symbol.for('bullpen.settings-origins')
type Origins = Readonly<Record<string, { readonly value: unknown; readonly origin: string | undefined }>>

interface Given {
  readonly value: unknown
  /** For example `BULLPEN_WORKER_PORT`, `--port` or `port in bullpen.json`. */
  readonly origin: string
}

/**
 * Reads settings from flags, the environment, a file and defaults, in that order of precedence. Validates them individually and
 * together, and returns them frozen.
 *
 * @throws BullpenError `invalid_configuration`, listing every unknown setting with the nearest known one, every invalid value with
 * the values that are accepted, and every contradiction.
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

/** Like {@link readSettings}, but for settings that a program passes as an object. */
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
 * Returns the origin of a setting's value: the name of a flag, a variable or a key in a file, `config.NAME` if the value was set
 * in code, or undefined if it is a default.
 */
export function originOf(config: object, name: string): string | undefined {
  const values = config as Readonly<Record<string | symbol, unknown>>
  const origins = values[ORIGINS] as Origins | undefined
  const value = values[name]
  if (value === undefined) return undefined
  const known = origins?.[name]
  return known !== undefined && Object.is(known.value, value) ? known.origin : `config.${name}`
}

/** Returns the flag of a setting. For example, the flag of `redisUrl` is `--redis-url`. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Creates the error for invalid settings. */
export function invalidConfiguration(faults: readonly string[]): BullpenError {
  const [only] = faults
  const text = faults.length === 1 ? ` ${only}` : `\n${faults.map((fault) => `  - ${fault}`).join('\n')}`
  return new BullpenError('invalid_configuration', `invalid configuration:${text}`)
}

/** The values that were read, with their origins, by setting name. */
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
    if (parsed.success && isWellFormed(given[name]?.value)) values[name] = parsed.data
    else all.push(wrongValue(setting, given[name]))
  }
  // Each setting in the table has just been parsed with its own schema, or there is a fault that says why it could not be.
  const settings = values as SettingsOf<T>
  if (all.length === 0) all.push(...rules.map((rule) => rule(settings)).filter((fault) => fault !== undefined))
  if (all.length > 0) throw invalidConfiguration(all)
  return settings
}

/** Ill-formed UTF-16, which a file or a program may contain, would end in an error of `encodeURIComponent` or as other text. */
function isWellFormed(given: unknown): boolean {
  return [given].flat().every((text) => typeof text !== 'string' || text.isWellFormed())
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
  for (const { flag, value, previous } of readArguments([...names.keys()], argv)) {
    const name = names.get(flag ?? '')
    if (flag === undefined) faults.push(unexpectedArgument(value, previous))
    else if (name === undefined) faults.push(`--${flag} is not a setting${didYouMean(`--${flag}`, flagsOf(names))}`)
    else if (value === undefined) faults.push(`--${flag} requires a value`)
    else if (name in values) faults.push(`--${flag} is specified twice`)
    else values[name] = { value, origin: `--${flag}` }
  }
  const { config, ...rest } = values
  return { values: rest, faults, configFile: config === undefined ? undefined : String(config.value) }
}

/** The argument after a flag may be the rest of a secret that contains a space, so it is not repeated. */
function unexpectedArgument(value: string | undefined, previous: string | undefined): string {
  return previous === undefined
    ? `unexpected argument ${JSON.stringify(value)}; pass settings as --name value`
    : `unexpected argument after the value of --${previous}; pass settings as --name value, and quote a value that contains spaces`
}

function flagsOf(names: ReadonlyMap<string, string>): string[] {
  return [...names.keys()].map((flag) => `--${flag}`)
}

function fromEnvironment(program: (typeof PROGRAMS)[number], table: SettingsTable, env: SettingsSources['env']): Read {
  const values: Record<string, Given> = {}
  for (const [name, { env: variable }] of Object.entries(table)) {
    // Compose files and CI systems set a variable to the empty string when they mean that it is unset.
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
  const parsed = parseFile(path, readFile)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalidConfiguration([`the file ${path} does not contain a JSON object of settings`])
  }
  const entries = Object.entries(parsed).map(
    ([name, value]) => [name, { value, origin: `${name} in ${path}` }] as const,
  )
  const faults = unknownNames(Object.keys(parsed), Object.keys(table), `${path}: `)
  return { values: Object.fromEntries(entries), faults }
}

/** @throws BullpenError whose message never contains the content of the file, because the file may contain secrets. */
function parseFile(path: string, readFile: SettingsSources['readFile']): unknown {
  let text: string
  try {
    text = readFile(path)
  } catch (cause) {
    throw invalidConfiguration([`cannot read the file ${path}: ${cause instanceof Error ? cause.message : cause}`])
  }
  const place = jsonSyntaxError(text)
  if (place === undefined) return JSON.parse(text)
  throw invalidConfiguration([
    `the file ${path} is not valid JSON: see line ${place.line}, column ${place.column}; expected a JSON object whose keys are the names of settings`,
  ])
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
