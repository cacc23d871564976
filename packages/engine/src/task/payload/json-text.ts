// Writes the values that leave a handler as JSON, where the handler runs: once, and in the same way in every isolation.
import { BullpenError } from '@bullpen/contract'
import { messageOf } from '../../verdict/thrown.ts'

// A handler may replace the methods of the global object.
const { stringify, parse } = JSON

/**
 * How many levels a value may have. JSON.stringify recurses, so the depth at which it fails depends on the size of the stack, which differs
 * between threads. The scripts in Redis cannot read more than 1,000 levels, including those of the record that contains the value.
 */
export const MAX_DEPTH = 500
const TOO_DEEP = `nested more than ${MAX_DEPTH} levels deep`

/**
 * Returns the value as JSON, or undefined if JSON has no form for it, as for undefined and functions. Within an object, JSON leaves out
 * such values. `root` is what the error calls the value; by default, its path begins with the name of a field.
 *
 * @throws TypeError that names the path of what cannot be represented: a BigInt, an object that contains itself, or one whose `toJSON`
 * or getter throws. Also throws it if the value has more than {@link MAX_DEPTH} levels.
 */
export function jsonText(value: unknown, root?: string): string | undefined {
  const rootPath = root === undefined ? [] : [root]
  let text: string | undefined
  try {
    text = stringify(value)
  } catch (cause) {
    const path = culpritIn(value, rootPath)
    if (path !== DEEP) throw new TypeError([...path, reasonOf(cause)].join(': '), { cause })
    throw new TypeError([...rootPath, TOO_DEEP].join(': '), { cause })
  }
  if (text !== undefined && isDeep(text)) throw new TypeError([...rootPath, TOO_DEEP].join(': '))
  return text
}

function isDeep(json: string): boolean {
  // Each level takes two characters.
  if (json.length <= 2 * MAX_DEPTH) return false
  let depth = 0
  let isInString = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (isInString) {
      if (char === '\\') at++
      else if (char === '"') isInString = false
    } else if (char === '"') isInString = true
    else if (char === '[' || char === '{') depth++
    else if (char === ']' || char === '}') depth--
    if (depth > MAX_DEPTH) return true
  }
  return false
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

/** What {@link search} returns if it finds nothing up to {@link MAX_DEPTH}, and the value has more levels. */
const DEEP: readonly string[] = []

/** Returns the path of the first part that JSON cannot represent, as a list of one text, or an empty list if it is not found again. */
function culpritIn(value: unknown, root: readonly string[]): readonly string[] {
  try {
    const found = search(value, root, '', [])
    if (found === DEEP) return DEEP
    return found === undefined || found.length === 0 ? [] : [found.join('.')]
  } catch {
    return [] // the value changes each time that it is read
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
  if (holders.length === MAX_DEPTH) return DEEP
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
