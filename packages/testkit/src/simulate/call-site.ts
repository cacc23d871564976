// Finds the line of the handler that made a call.
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A place in the source. Its text is created only when a report needs it. */
export type CallSite = () => string | undefined

/**
 * Captures where the function `callee` was called. The site's text is `file:line:column`, relative to the current directory, or
 * undefined if the stack is unknown.
 */
export function callSite(callee: (...args: never[]) => unknown): CallSite {
  const holder: { stack?: unknown } = {}
  Error.captureStackTrace(holder, callee)
  return () => (typeof holder.stack === 'string' ? locationIn(holder.stack) : undefined)
}

/** Returns the location of the topmost frame that is neither Node's own nor that of a function without a source. */
function locationIn(stack: string): string | undefined {
  for (const frame of stack.split('\n').slice(1)) {
    const [, file, position] =
      /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:\\).*?)((?::\d+){2})\)?$/.exec(frame) ?? []
    if (file !== undefined && position !== undefined) return `${relativePath(file)}${position}`
  }
  return undefined
}

function relativePath(file: string): string {
  return relative(process.cwd(), file.startsWith('file:') ? fileURLToPath(file) : file)
}
