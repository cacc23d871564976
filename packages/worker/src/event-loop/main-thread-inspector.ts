// Finds out, from another thread, what the main thread is executing: pauses it for some milliseconds through V8's inspector.
//
// - The main thread always continues: after MAX_PAUSE_MS at the latest, and also when this side fails.
// - The pause is requested together with enabling the debugger, so that it takes effect on the first JavaScript that runs, in a
//   loop too. Native code can't be paused: the sample then waits until that code returns.
// - A pause that was not ours is a breakpoint of a developer's debugger, and is left alone.
import type { Runtime, Session } from 'node:inspector'
import { settlesWithin } from '@bullpen/engine/node'
import type { AttemptInLoop } from './messages.ts'
import { locationOf } from './source-location.ts'

/** The longest that the main thread is paused, and that disabling the debugger may take. */
const MAX_PAUSE_MS = 500

/** What the main thread was executing. */
export interface StackSample {
  readonly attempt: AttemptInLoop | undefined
  /** Undefined when only Node itself runs. */
  readonly location: string | undefined
  /** The main thread's newest tick when it was paused. */
  readonly tick: number
}

/**
 * Resolves when the main thread has run JavaScript again: with undefined if `signal` was aborted before, or if another debugger
 * has paused it.
 *
 * @throws when this Node has no inspector.
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
      // Paused before our own request was confirmed: this is a breakpoint of another debugger, and must stay paused.
      if (!requested) return resolve(undefined)
      const location = locationOf(params.callFrames, (script) => urls.get(script))
      let found: StackSample = { attempt: undefined, location, tick: tick() }
      const longest = setTimeout(() => {
        session.post('Debugger.resume')
        resolve(found)
      }, MAX_PAUSE_MS)
      // Disabled before the main thread has really resumed, V8's debugger keeps a pause request and applies it when it is enabled again.
      session.once('Debugger.resumed', () => {
        clearTimeout(longest)
        resolve(found)
      })
      // Evaluated outside the frame: Node's own frames see no globals, and a handler's may shadow them.
      session.post('Runtime.evaluate', { expression, silent: true }, (error, answer: Runtime.EvaluateReturnType) => {
        // While disconnecting this is called with an error, and the session can't post any more.
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

/** Disconnecting alone would also resume the main thread. Disabling first takes back a pause request that is still waiting. */
async function disconnect(session: Session): Promise<void> {
  const disabled = new Promise<void>((resolve) => {
    session.post('Debugger.disable', () => resolve())
  })
  await settlesWithin(disabled, MAX_PAUSE_MS)
  session.disconnect()
}
