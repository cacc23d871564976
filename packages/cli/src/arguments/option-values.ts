// Parses the values of options, before any request is sent. Every function throws UsageError.
import {
  BullpenError,
  type Duration,
  type Limit,
  type Memory,
  milliseconds,
  type TaskStatus,
  type WhenFull,
} from '@bullpen/contract'
import {
  bytes,
  type DurationRange,
  KEY_RELEASES,
  limitMs,
  MAX_PRIORITY,
  millisecondsOrZero,
  millisecondsWithin,
  suggestion,
  TASK_STATUSES,
  whenFullSchema,
} from '@bullpen/contract/internal'
import { UsageError } from './usage-error.ts'

export function parseDuration(option: string, text: string | undefined, longest?: Duration): Duration | undefined {
  if (text === undefined) return undefined
  const ms = asUsageError(() => milliseconds(text, option))
  if (longest !== undefined && ms > milliseconds(longest)) {
    throw new UsageError(`${option} is '${text}'; the maximum is ${longest}`)
  }
  return text as Duration
}

/** Like {@link parseDuration}, but accepts zero with a unit. */
export function parseDurationOrZero(option: string, text: string | undefined, longest: Duration): Duration | undefined {
  const isZero = text !== undefined && asUsageError(() => millisecondsOrZero(text, option)) === 0
  return isZero ? (text as Duration) : parseDuration(option, text, longest)
}

export function parseDurationWithin(option: string, text: string | undefined, range: DurationRange) {
  if (text === undefined) return undefined
  asUsageError(() => millisecondsWithin(text, option, range))
  return text as Duration
}

export function parseLimit(option: string, text: string | undefined): Limit | undefined {
  asUsageError(() => limitMs(text, option))
  return text as Limit | undefined
}

/** Parses when a unique key is released. */
export function parseUntil(option: string, text: string | undefined) {
  if (text === undefined) return undefined
  const event = KEY_RELEASES.find((each) => each === text)
  if (event !== undefined) return event
  try {
    milliseconds(text)
  } catch {
    throw new UsageError(`${option} is '${text}'; expected started, finished, or a duration such as 10m`)
  }
  return text as Duration
}

/** Parses what happens if the queue is full. A duration is how long to wait for room. */
export function parseWhenFull(text: string | undefined): WhenFull | undefined {
  if (text === undefined || text === 'reject' || text === 'drop') return text
  if (whenFullSchema.safeParse({ block: text }).success) return { block: text as Duration }
  throw new UsageError(`--when-full is '${text}'; expected reject, drop, or a duration of at most 30s`)
}

export function parseTime(option: string, text: string | undefined): string | undefined {
  // Date.parse also accepts times without an offset, which would depend on the time zone of this machine.
  if (text === undefined || (/T.*(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)))) return text
  throw new UsageError(`${option} is '${text}'; expected a time with an offset, such as 2030-12-31T09:00:00Z`)
}

export function parsePriority(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d$/.test(text)) return Number(text)
  throw new UsageError(`--priority is '${text}'; expected a whole number from 0 to ${MAX_PRIORITY}`)
}

export function parseMeta(texts: readonly string[] = []): Readonly<Record<string, string>> | undefined {
  if (texts.length === 0) return undefined
  const labels = texts.map((text) => {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`--meta is '${text}'; expected KEY=VALUE`)
    return [text.slice(0, at), text.slice(at + 1)] as const
  })
  return namedOnce('--meta', labels)
}

/** Returns an object with these entries. @throws UsageError if two of them have the same name. */
export function namedOnce<T>(option: string, entries: readonly (readonly [string, T])[]): Readonly<Record<string, T>> {
  const names = entries.map(([name]) => name)
  const repeated = names.find((name, at) => names.indexOf(name) < at)
  if (repeated !== undefined) throw new UsageError(`${option} names '${repeated}' twice; expected each name once`)
  return Object.fromEntries(entries)
}

export function parseStatus(text: string | undefined): TaskStatus {
  if (!text) throw new UsageError(`missing option --status STATUS; expected one of ${TASK_STATUSES.join(', ')}`)
  return parseChoice('--status', text, TASK_STATUSES)
}

/** Returns the matching choice, or undefined without a text. If there is no such choice, the error suggests the nearest one. */
export function parseChoice<T extends string>(option: string, text: string, choices: readonly T[]): T
export function parseChoice<T extends string>(
  option: string,
  text: string | undefined,
  choices: readonly T[],
): T | undefined
export function parseChoice<T extends string>(option: string, text: string | undefined, choices: readonly T[]) {
  if (text === undefined) return undefined
  const found = choices.find((choice) => choice === text)
  if (found !== undefined) return found
  throw new UsageError(`${option} is '${text}'; expected one of ${choices.join(', ')}${suggestion(text, choices)}`)
}

type RateOrNone = 'none' | { readonly max: number; readonly per: Duration }

/** Parses a rate such as `100/1s`, or `none`. `largest` is the largest number per period that the API accepts. */
export function parseRate(option: string, text: string | undefined, largest: number): RateOrNone | undefined {
  if (text === undefined || text === 'none') return text
  const [max, per] = text.split('/', 2)
  if (max === undefined || per === undefined) {
    throw new UsageError(`${option} is '${text}'; expected a number per period, such as 100/1s, or none`)
  }
  return { max: parseCount(option, max, largest), per: parseDuration(option, per) as Duration }
}

/** Parses a whole number, if there is one. `max` is the largest number that the API accepts, if it has a limit. */
export function parseCount(option: string, text: string, max?: number): number
export function parseCount(option: string, text: string | undefined, max?: number): number | undefined
export function parseCount(option: string, text: string | undefined, max = 999_999_999): number | undefined {
  if (text === undefined) return undefined
  const count = /^[1-9]\d*$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= max) return count
  throw new UsageError(`${option} is '${text}'; expected a whole number from 1 to ${max}`)
}

/** Parses a number that may have a fraction. */
export function parseNumber(
  option: string,
  text: string | undefined,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw new UsageError(`${option} is '${text}'; expected a number from ${min} to ${max}`)
}

/** Parses an amount of memory such as `64MiB`, a number of bytes, or `none`. */
export function parseBytes(option: string, text: string | undefined): 'none' | Memory | number | undefined {
  if (text === undefined || text === 'none') return text
  if (/^\d+$/.test(text)) return parseCount(option, text, Number.MAX_SAFE_INTEGER)
  asUsageError(() => bytes(text, option))
  return text as Memory
}

type Defined<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Returns the fields that have a value. */
export function withoutUndefined<const T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

export function requireValue(option: string, text: string | undefined): string {
  if (text === undefined || text === '') throw new UsageError(`missing option ${option}`)
  return text
}

function asUsageError<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof BullpenError ? new UsageError(error.message) : error
  }
}
