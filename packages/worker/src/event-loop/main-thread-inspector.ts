// Determines from another thread what the main thread is executing, by pausing the main thread for a few milliseconds with V8's inspector.
//
// - The main thread always continues, after MAX_PAUSE_MS at the latest, even if this side fails.
// - The pause is requested together with enabling the debugger, so that it takes effect on the first JavaScript that runs, even
//   inside a loop. Native code can't be paused; in that case the sample waits until the native code returns.
// - A pause that this module did not request is a breakpoint in a developer's debugger, and is left alone.
import type { Runtime, Session } from 'node:inspector'
import { settlesWithin } from '@bullpen/engine/node'
import type { AttemptInLoop } from './messages.ts'
import { locationOf } from './source-location.ts'

/** The maximum time for which the main thread is paused, and the maximum time that disabling the debugger may take, in ms. */
const MAX_PAUSE_MS = 500

/** What the main thread was executing. */
export interface StackSample {
  readonly attempt: AttemptInLoop | undefined
  /** Undefined if only Node's own code was running. */
  readonly location: string | undefined
  /** The main thread's latest tick at the time of the pause. */
  readonly tick: number
}

/**
 * Samples the main thread's stack. Resolves with the sample once the main thread runs JavaScript again, or with undefined if
 * `signal` aborts before then or another debugger has paused the main thread.
 *
 * @throws if this Node has no inspector.
 */
export async function sampleMainThread(
  hook: string,
  signal: AbortSignal,
  tick: () => number,
): Promise<StackSample | undefined> {
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connectToMainThread()
  const disconnecting = new AbortController()
  try {
    return await sample(session, hook, signal, disconnecting.signal, tick)
  } finally {
    disconnecting.abort()
    await disconnect(session)
  }
}

function sample(
  session: Session,
  hook: string,
  signal: AbortSignal,
  disconnecting: AbortSignal,
  tick: () => number,
): Promise<StackSample | undefined> {
  return new Promise((resolve, reject) => {
    const expression = `globalThis[Symbol.for(${JSON.stringify(hook)})]?.()`
    const urls = new Map<string, string>()
    let requested = false
    const rejectWith = (error: Error | null): void => {
      if (error !== null) reject(error)
    }
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url))
    session.on('Debugger.paused', ({ params }) => {
      // If the pause came before our own request was confirmed, it is a breakpoint of another debugger and must stay paused.
      if (!requested) return resolve(undefined)
      const location = locationOf(params.callFrames, (script) => urls.get(script))
      let found: StackSample = { attempt: undefined, location, tick: tick() }
      const longest = setTimeout(() => {
        session.post('Debugger.resume')
        resolve(found)
      }, MAX_PAUSE_MS)
      // Wait until the main thread has really resumed. If V8's debugger is disabled before then, V8 keeps the pause request and
      // applies it when the debugger is enabled again.
      session.once('Debugger.resumed', () => {
        clearTimeout(longest)
        resolve(found)
      })
      // The expression is evaluated outside the frame, because Node's own frames cannot see globals and a handler's frames may
      // shadow them.
      session.post('Runtime.evaluate', { expression, silent: true }, (error, answer: Runtime.EvaluateReturnType) => {
        // During disconnection, this callback is called with an error, and the session can no longer post.
        if (disconnecting.aborted) return
        const running: unknown = error === null ? answer.result.value : undefined
        if (typeof running === 'string') found = { ...found, attempt: JSON.parse(running) as AttemptInLoop }
        session.post('Debugger.resume')
      })
    })
    session.post('Debugger.enable', rejectWith)
    session.post('Debugger.pause', (error) => {
      requested = true
      rejectWith(error)
    })
  })
}

/**
 * Disables the debugger and disconnects. Disconnecting alone would resume the main thread, but disabling first also withdraws a
 * pause request that is still pending.
 */
async function disconnect(session: Session): Promise<void> {
  const disabled = new Promise<void>((resolve) => {
    session.post('Debugger.disable', () => resolve())
  })
  await settlesWithin(disabled, MAX_PAUSE_MS)
  session.disconnect()
}
