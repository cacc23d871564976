// Runs an API as a process: listening, closed on SIGTERM or SIGINT, hurried by a second signal, with an exit code.
import type { Api } from './create-api.ts'

/** From the signal to the exit. A request that is still unanswered by then would be cut off by the platform anyway. */
const STOP_WITHIN_MS = 10_000

/**
 * Resolves with the code to exit with. 0: everything was closed. 1: it was not within 10 s, so exit now: requests are cut
 * off. A second signal exits at once, with 1. Rejects when the API can't listen.
 */
export async function runUntilSignalled(api: Api): Promise<0 | 1> {
  const { promise: signalled, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let stopping = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    resolve(signal)
  }
  // Before it listens: a signal that comes early must not kill it without closing.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  api.log.info({ ...(await api.listen()) }, 'the API listens')
  api.log.info({ signal: await signalled }, 'the API is stopping')
  const { promise: late, resolve: giveUp } = Promise.withResolvers<1>()
  const timer = setTimeout(() => giveUp(1), STOP_WITHIN_MS)
  const code = await Promise.race([api.close().then(() => 0 as const), late])
  clearTimeout(timer)
  process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
  if (code === 1) api.log.error({ withinMs: STOP_WITHIN_MS }, 'the API could not stop in time: requests are cut off')
  return code
}
