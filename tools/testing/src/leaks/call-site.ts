// Finds where something was created: the frame of a stack trace that a reader can act on.
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How many frames are recorded. The frames of Node and of a client library come before ours. */
const FRAMES = 40

/** A stack trace whose text V8 writes only when it is read, so that recording a trace is cheap. */
export interface CallSite {
  readonly stack?: string
}

/** Records the callers of the current function. Leaves out `above` and everything that it called. */
export function callSite(above: (...args: never[]) => unknown): CallSite {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES
  const site = {}
  Error.captureStackTrace(site, above)
  Error.stackTraceLimit = stackTraceLimit
  return site
}

const LOCATION = /(?:\(|at (?:async )?)((?:file:\/\/)?\/[^()]+:\d+:\d+)\)?$/

/** The file with the test runner's wrapper of `process.emit`, which is a caller of every `newListener` listener. */
const EMIT_WRAPPER = '/vitest/suppress-warnings.cjs'

/** Returns the files of a trace, except Node's own, as `path:line:column`, innermost first. */
function frames({ stack = '' }: CallSite): readonly string[] {
  return stack.split('\n').flatMap((line) => {
    const location = LOCATION.exec(line.trim())?.[1]
    if (location === undefined || location.includes(EMIT_WRAPPER)) return []
    return [location.startsWith('file:') ? fileURLToPath(location) : location]
  })
}

/** How many callers are shown. Several are needed to find a timer that a shared helper created. */
const SHOWN = 3

/**
 * Returns the innermost frame followed by the frames of this repository, such as `clock.ts:67:13 < runner.ts:80:5`, or undefined
 * if only Node's own frames are left.
 */
export function placeOf(site: CallSite): string | undefined {
  const all = frames(site)
  const shown = all.filter((frame, depth) => depth === 0 || !frame.includes('/node_modules/')).slice(0, SHOWN)
  return shown.length === 0 ? undefined : shown.map((frame) => relative(process.cwd(), frame)).join(' < ')
}

const TEST_RUNNER = /\/node_modules\/(?:vitest|@vitest|tinypool|tinyspy)\//

/** Returns whether the test runner's own code created the resource, as opposed to code that the runner called. */
export function isOfTestRunner(site: CallSite): boolean {
  const [innermost] = frames(site)
  return innermost !== undefined && TEST_RUNNER.test(innermost)
}

/** Returns whether a dependency's code is among the callers. */
export function passesThrough({ stack = '' }: CallSite, dependency: string): boolean {
  return stack.includes(`/node_modules/${dependency}/`)
}

/** Returns whether any caller's name begins with this text, such as `AbortSignal.timeout`. */
export function wasCalledBy({ stack = '' }: CallSite, name: string): boolean {
  return stack.includes(`at ${name}`)
}
