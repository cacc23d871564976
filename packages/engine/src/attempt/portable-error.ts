// Converts errors to plain data that can be sent between threads and processes, and converts it back to errors on the other side.
import { messageOf } from '../verdict/thrown.ts'

export interface PortableError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: string | number | undefined
  readonly cause: PortableError | undefined
}

/** The maximum depth of nested causes. Longer chains are cut, because a cause may refer to itself. */
const MAX_CAUSE_DEPTH = 5

/** Converts an error to plain data. Other fields are not sent, because they may be huge, secret or impossible to clone. */
export function toPortable(thrown: unknown, depth = 0): PortableError {
  try {
    if (!(thrown instanceof Error)) return plain('Error', messageOf(thrown))
    const { name, message, stack, cause } = thrown
    const { code } = thrown as { readonly code?: unknown }
    return {
      name: String(name),
      message: String(message),
      stack: typeof stack === 'string' ? stack : undefined,
      code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
      cause: cause === undefined || depth === MAX_CAUSE_DEPTH ? undefined : toPortable(cause, depth + 1),
    }
  } catch {
    return plain('Error', 'an error whose fields throw when they are read')
  }
}

export function fromPortable({ name, message, stack, code, cause }: PortableError): Error {
  // The platform aborts signals with these errors, and handlers and libraries recognise them by their class.
  if (name === 'AbortError' || name === 'TimeoutError') return new DOMException(message, name)
  const error = new Error(message, cause === undefined ? undefined : { cause: fromPortable(cause) })
  const hidden = { configurable: true, enumerable: false, writable: true }
  if (name !== error.name) Object.defineProperty(error, 'name', { ...hidden, value: name })
  if (stack !== undefined) Object.defineProperty(error, 'stack', { ...hidden, value: stack })
  return code === undefined ? error : Object.assign(error, { code })
}

function plain(name: string, message: string): PortableError {
  return { name, message, stack: undefined, code: undefined, cause: undefined }
}
