// Converts a log line's fields to the form in which they leave an isolate: JSON, with the errors kept separately.
import { inspect } from 'node:util'
import { fromPortable, type PortableError, toPortable } from './portable-error.ts'

export interface PortableFields {
  readonly json: string
  /**
   * The fields that are errors, as in `log.error({ err }, …)`. They are separate because loggers format errors in their own way.
   */
  readonly errors: Readonly<Record<string, PortableError>>
}

export function packFields(fields: object): PortableFields {
  const rest: Record<string, unknown> = {}
  const errors: Record<string, PortableError> = {}
  const whole = fields instanceof Error ? { err: fields } : fields
  for (const [name, value] of Object.entries(whole)) {
    if (value instanceof Error) errors[name] = toPortable(value)
    else rest[name] = value
  }
  return { json: jsonOf(rest), errors }
}

export function unpackFields({ json, errors }: PortableFields): object {
  const revived = Object.entries(errors).map(([name, error]) => [name, fromPortable(error)])
  return { ...JSON.parse(json), ...Object.fromEntries(revived) }
}

/**
 * Returns the fields as JSON. Never throws, because logging must not make a handler fail that would otherwise have succeeded.
 */
function jsonOf(fields: Record<string, unknown>): string {
  try {
    return JSON.stringify(fields, (_, value) => {
      if (typeof value === 'bigint') return String(value)
      return value instanceof Error ? toPortable(value) : value
    })
  } catch {
    // The fields contain a cycle, or a toJSON method throws.
    return JSON.stringify(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, inspect(value)])))
  }
}
