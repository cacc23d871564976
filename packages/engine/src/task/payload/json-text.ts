// Writes the values that leave a handler as JSON, where the handler runs: once, and in the same way in every isolation.
import { BullpenError } from '@bullpen/contract'
import { messageOf } from '../../verdict/thrown.ts'

// A handler may replace the methods of the global object.
const { stringify, parse } = JSON

/**
 * Returns the value as JSON, or undefined if JSON has no form for it, as for undefined and functions. Within an object, JSON leaves out
 * such values. `root` is what the error calls the value; by default, its path begins with the name of a field.
 *
 * @throws TypeError that names the path of what cannot be represented: a BigInt, an object that contains itself, or one whose `toJSON`
 * or getter throws.
 */
export function jsonText(value: unknown, root?: string): string | undefined {
  try {
    return stringify(value)
  } catch (cause) {
    const path = culpritIn(value, root === undefined ? [] : [root])
    throw new TypeError([...path, reasonOf(cause)].join(': '), { cause })
  }
}

/** The arguments of a call with which a handler names another task. */
export interface TaskCall<Options extends object> {
  readonly input: unknown
  readonly options: Options | undefined
}

/** Returns the call as JSON. @throws BullpenError `invalid_input`. */
export function encodeCall(task: string, call: TaskCall<object>): string {
  try {
    return jsonText(call) ?? '{}'
  } catch (cause) {
    const message = `the input of ${task} cannot be written as JSON: ${messageOf(cause)}`
    throw new BullpenError('invalid_input', message, { cause })
  }
}

export function decodeCall<Options extends object>(text: string): TaskCall<Options> {
  const { input, options }: Partial<TaskCall<Options>> = parse(text)
  return { input, options }
}

/** If an object contains itself, the other lines of the message show where. */
function reasonOf(cause: unknown): string {
  const [reason = ''] = messageOf(cause).split('\n')
  return reason
}

/** Returns the path of the first part that JSON cannot represent, as a list of one text, or an empty list if it is not found again. */
function culpritIn(value: unknown, root: readonly string[]): readonly string[] {
  try {
    const found = search(value, root, '', [])
    return found === undefined || found.length === 0 ? [] : [found.join('.')]
  } catch {
    return [] // the value is nested too deeply, or changes each time that it is read
  }
}

function search(
  given: unknown,
  path: readonly string[],
  key: string,
  holders: readonly object[],
): readonly string[] | undefined {
  const value = withoutToJson(given, key)
  if (value === UNREADABLE || typeof value === 'bigint') return path
  if (typeof value !== 'object' || value === null) return undefined
  if (holders.includes(value)) return path
  for (const name of Object.keys(value)) {
    const found = search(readOf(value, name), [...path, name], name, [...holders, value])
    if (found !== undefined) return found
  }
  return undefined
}

const UNREADABLE = Symbol('a toJSON method or a getter has thrown')

function withoutToJson(value: unknown, key: string): unknown {
  try {
    const { toJSON } = (value ?? {}) as { readonly toJSON?: unknown }
    return typeof toJSON === 'function' && typeof value !== 'function' ? toJSON.call(value, key) : value
  } catch {
    return UNREADABLE
  }
}

function readOf(holder: object, name: string): unknown {
  try {
    return Reflect.get(holder, name)
  } catch {
    return UNREADABLE
  }
}
