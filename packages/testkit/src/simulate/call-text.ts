// Writes values as text, so that the arguments of two calls can be compared and shown in a report.

const IDEMPOTENCY_KEY = '<idempotency key>'

/**
 * Returns the arguments as text. Equal arguments have equal texts, whatever the order of their properties. Functions, abort signals
 * and absent arguments at the end are left out, because they do not describe an effect. A string that equals `idempotencyKey` is
 * replaced.
 */
export function argumentsText(args: readonly unknown[], idempotencyKey?: string): string {
  const write = (value: unknown): string => textOf(value, idempotencyKey, [])
  const described = args.filter((value) => !isOmitted(value))
  return described
    .slice(0, described.findLastIndex((value) => value !== undefined) + 1)
    .map(write)
    .join(', ')
}

function isOmitted(value: unknown): boolean {
  return typeof value === 'function' || value instanceof AbortSignal
}

function textOf(value: unknown, idempotencyKey: string | undefined, ancestors: readonly object[]): string {
  if (typeof value === 'string') return value === idempotencyKey ? IDEMPOTENCY_KEY : JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value !== 'object' || value === null) return String(value)
  if (ancestors.includes(value)) return '<circular>'
  const write = (inner: unknown): string => textOf(inner, idempotencyKey, [...ancestors, value])
  if (ArrayBuffer.isView(value)) return `<${bytesOf(value).toString('base64')}>`
  if (value instanceof Error) return `<${value.name}: ${value.message}>`
  if (value instanceof Map) return `<Map ${write([...value])}>`
  if (value instanceof Set) return `<Set ${write([...value])}>`
  if (Array.isArray(value)) return `[${value.map(write).join(', ')}]`
  if ('toJSON' in value && typeof value.toJSON === 'function') return write(value.toJSON())
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined && !isOmitted(field))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => `${/^[\w$]+$/.test(name) ? name : JSON.stringify(name)}: ${write(field)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Returns the abort signal that a call passes on, either as an argument or as a property of one. */
export function signalIn(args: readonly unknown[]): AbortSignal | undefined {
  for (const value of args) {
    if (value instanceof AbortSignal) return value
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) continue
    const found = Object.values(value).find((field) => field instanceof AbortSignal)
    if (found !== undefined) return found
  }
  return undefined
}
