// Converts a log line's fields to the form in which they leave a handler: JSON, with the errors kept separately.
import type { Log } from '@bullpen/contract'
import { MAX_DEPTH } from '../task/payload/json-text.ts'
import { errorOf, messageOf } from '../verdict/thrown.ts'
import { fromPortable, type PortableError, toPortable } from './portable-error.ts'

export interface PortableFields {
  readonly json: string
  /**
   * The fields that are errors, as in `log.error({ err }, …)`. They are separate because loggers format errors in their own way.
   */
  readonly errors: Readonly<Record<string, PortableError>>
}

export function packFields(fields: object): PortableFields {
  const { json, errors } = separate(fields)
  return { json, errors: Object.fromEntries(Object.entries(errors).map(([name, error]) => [name, toPortable(error)])) }
}

export function unpackFields({ json, errors }: PortableFields): object {
  const revived = Object.entries(errors).map(([name, error]) => [name, fromPortable(error)])
  return { ...JSON.parse(json), ...Object.fromEntries(revived) }
}

/** Returns a log whose lines have the same fields as if they had come from an isolate, but errors with all of their own fields. */
export function portableLog(log: Log): Log {
  const write =
    (level: keyof Log) =>
    (fields: object, message: string): void => {
      log[level](isPlain(fields) ? fields : joined(separate(fields)), messageOf(message))
    }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

function joined({ json, errors }: ReturnType<typeof separate>): object {
  return { ...JSON.parse(json), ...errors }
}

/**
 * Returns the errors among the fields, and the others as JSON. Never throws, because logging must not make a handler fail that would
 * otherwise have succeeded.
 */
function separate(fields: object): { readonly json: string; readonly errors: Readonly<Record<string, Error>> } {
  const texts: string[] = []
  const errors: Record<string, Error> = {}
  for (const [name, read] of readersOf(fields)) {
    try {
      const value = read()
      if (value instanceof Error) errors[name] = errorOf(value)
      else {
        const text = fieldText(value)
        if (text !== undefined) texts.push(`${JSON.stringify(name)}:${text}`)
      }
    } catch (cause) {
      texts.push(`${JSON.stringify(name)}:${JSON.stringify(`[unreadable: ${messageOf(cause)}]`)}`)
    }
  }
  return { json: `{${texts.join()}}`, errors }
}

/** Returns the names of the fields, each with a function that reads the field. */
function readersOf(fields: object): readonly (readonly [name: string, read: () => unknown])[] {
  try {
    if (fields instanceof Error) return [['err', () => fields]]
    const own = 'toJSON' in fields && typeof fields.toJSON === 'function' ? Object(fields.toJSON()) : fields
    return Object.keys(own).map((name) => [name, () => Reflect.get(own, name)])
  } catch (cause) {
    return [['fields', () => `[unreadable: ${messageOf(cause)}]`]]
  }
}

/** Returns a field as JSON, in which nested errors, bigints and cycles have a form as well. */
function fieldText(field: unknown): string | undefined {
  const holders: object[] = []
  return JSON.stringify(field, function (this: object, _key, value: unknown) {
    if (typeof value === 'bigint') return String(value)
    if (typeof value !== 'object' || value === null) return value
    // The objects that contain this one are those up to its holder.
    holders.length = holders.lastIndexOf(this) + 1
    if (holders.includes(value)) return '[circular]'
    if (holders.length === MAX_DEPTH) return '[nested too deeply]'
    holders.push(value)
    return value instanceof Error ? toPortable(value) : value
  })
}

/** Returns whether the fields are an ordinary object of texts, numbers and booleans, as those of most lines are. */
function isPlain(fields: object): boolean {
  try {
    if (Object.getPrototypeOf(fields) !== Object.prototype) return false
    return Object.values(Object.getOwnPropertyDescriptors(fields)).every(
      ({ value, enumerable }) =>
        enumerable === true && (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)),
    )
  } catch {
    return false
  }
}
