// Removes the sensitive values of a task's input from the errors and log lines of its attempts.
//
// A handler may put such a value into any error or line, as in `card ${card} was declined`, so the values themselves are searched for.
import type { Log, TaskDefinition } from '@bullpen/contract'
import type { OutcomeDetails } from '../verdict/outcome.ts'
import { hasSensitiveParts, sensitiveValues } from './sensitive-values.ts'

export const REDACTED = '[redacted]'

/** Shorter values are not searched for, because they occur in other words, and would reveal themselves by their absence. */
const SHORTEST = 4

/** Nested fields of log lines below this depth are removed, since they may be circular. */
const DEEPEST = 8

export interface Redactor {
  text(text: string): string
  /** Returns an error, or the fields of a line, without sensitive values. Returns the same error if it contains none. */
  value(value: unknown): unknown
}

/**
 * Returns the redactor for an attempt, or undefined if the definition marks nothing as sensitive. `inputs` are the input as the caller
 * sent it and, if it has been parsed, as the handler gets it.
 */
export function redactorOf({ input }: Pick<TaskDefinition, 'input'>, inputs: readonly unknown[]): Redactor | undefined {
  if (!hasSensitiveParts(input)) return undefined
  const values = new Set(inputs.flatMap((each) => [...sensitiveValues(input, each)]))
  const forms = [...values].filter(({ length }) => length >= SHORTEST).flatMap(formsOf)
  // A value may contain another one.
  return redactor([...new Set(forms)].sort((one, other) => other.length - one.length))
}

/** Returns the value as it is, within JSON, and within a URL. */
function formsOf(value: string): readonly string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.toWellFormed())]
}

function redactor(secrets: readonly string[]): Redactor {
  const text = (given: string): string => secrets.reduce((left, secret) => left.replaceAll(secret, REDACTED), given)

  const redact = (given: unknown, depth: number): unknown => {
    if (typeof given === 'string') return text(given)
    if (typeof given === 'number' || typeof given === 'bigint') {
      return text(String(given)) === String(given) ? given : REDACTED
    }
    if (typeof given !== 'object' || given === null) return given
    if (depth === DEEPEST) return REDACTED
    if (given instanceof Error) return redactError(given, depth)
    if (Array.isArray(given)) return given.map((each) => redact(each, depth + 1))
    if ('toJSON' in given && typeof given.toJSON === 'function') return redact(given.toJSON(), depth + 1)
    return Object.fromEntries(Object.entries(given).map(([name, each]) => [text(name), redact(each, depth + 1)]))
  }

  const redactError = (error: Error, depth: number): Error => {
    const { code } = error as { readonly code?: unknown }
    const message = text(error.message)
    const stack = error.stack === undefined ? undefined : text(error.stack)
    const cause = redact(error.cause, depth + 1)
    if (message === error.message && stack === error.stack && cause === error.cause) return error
    // The error belongs to the handler, so it is not changed.
    const copy: Error & { code?: unknown } = new Error(message, cause === undefined ? {} : { cause })
    copy.name = error.name
    if (stack !== undefined) copy.stack = stack
    if (code !== undefined) copy.code = redact(code, depth + 1)
    return copy
  }

  const value = (given: unknown): unknown => {
    try {
      return redact(given, 0)
    } catch {
      // A getter or a toJSON method has thrown. The end of an attempt must not depend on that.
      return given instanceof Error ? new Error(REDACTED) : { [REDACTED]: true }
    }
  }
  return { text, value }
}

/** Returns what is recorded and logged of an attempt's end, without sensitive values. */
export function redactedDetails(details: OutcomeDetails, { text, value }: Redactor): OutcomeDetails {
  const { message, error } = details
  return {
    ...details,
    ...(message !== undefined && { message: text(message) }),
    ...(error !== undefined && { error: value(error) }),
  }
}

/** Returns a log that removes sensitive values from its lines. */
export function redactingLog(log: Log, { text, value }: Redactor): Log {
  const write =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      log[level](value(fields) as object, text(`${message}`))
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
