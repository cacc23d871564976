// Finds out, from another thread, what the main thread is doing this moment: stops it for some milliseconds and asks.
import type { Runtime, Session } from 'node:inspector'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AttemptInLoop } from './messages.ts'
import { locationOf } from './source-location.ts'

/** The longest that the main thread is held, and that saying goodbye may take. */
const HOLD_MS = 500

export interface Sighting {
  readonly attempt: AttemptInLoop | undefined
  /** Undefined where only Node itself runs. */
  readonly location: string | undefined
  /** The main thread's last beat when it was stopped. */
  readonly beat: number
}

/**
 * Resolves when the main thread has run JavaScript again, be it in a loop without an end: with undefined when `signal`
 * was aborted before, or when somebody else's debugger holds it. The main thread always goes on. Native code can't be
 * stopped, so that it may take as long as that does. @throws where this Node has no inspector.
 */
export async function lookAtMainThread(
  hook: string,
  signal: AbortSignal,
  beat: () => number,
): Promise<Sighting | undefined> {
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connectToMainThread()
  const leaving = new AbortController()
  try {
    return await sightingOf(session, hook, signal, leaving.signal, beat)
  } finally {
    leaving.abort()
    await leave(session)
  }
}

function sightingOf(
  session: Session,
  hook: string,
  signal: AbortSignal,
  left: AbortSignal,
  beat: () => number,
): Promise<Sighting | undefined> {
  return new Promise((resolve, reject) => {
    const expression = `globalThis[Symbol.for(${JSON.stringify(hook)})]?.()`
    const question = { expression, silent: true }
    const urls = new Map<string, string>()
    let asked = false
    const failed = (error: Error | null): void => {
      if (error !== null) reject(error)
    }
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url))
    session.on('Debugger.paused', ({ params }) => {
      // Told before our own request was answered: it stands at somebody's breakpoint, and must stay there.
      if (!asked) return resolve(undefined)
      const location = locationOf(params.callFrames, (script) => urls.get(script))
      let sighting: Sighting = { attempt: undefined, location, beat: beat() }
      const longest = setTimeout(() => {
        session.post('Debugger.resume')
        resolve(sighting)
      }, HOLD_MS)
      // Disabled before it has really gone on, V8's debugger keeps a request to stop, for whoever enables it next.
      session.once('Debugger.resumed', () => {
        clearTimeout(longest)
        resolve(sighting)
      })
      // Evaluated outside the frame: Node's own frames see no globals, and a handler's may hide them.
      session.post('Runtime.evaluate', question, (error, answer: Runtime.EvaluateReturnType) => {
        // After leaving, this is called with an error, and the session can post no more.
        if (left.aborted) return
        const told: unknown = error === null ? answer.result.value : undefined
        if (typeof told === 'string') sighting = { ...sighting, attempt: JSON.parse(told) as AttemptInLoop }
        session.post('Debugger.resume')
      })
    })
    // Both at once: where native code ends, the first thing that runs is to stop.
    session.post('Debugger.enable', failed)
    session.post('Debugger.pause', (error) => {
      asked = true
      failed(error)
    })
  })
}

/** Disconnecting alone would let the main thread go, too; asking first also takes back a request that is still waiting. */
async function leave(session: Session): Promise<void> {
  const disabled = new Promise<void>((resolve) => {
    session.post('Debugger.disable', () => resolve())
  })
  await Promise.race([disabled, sleep(HOLD_MS, undefined, { ref: false })])
  session.disconnect()
}
