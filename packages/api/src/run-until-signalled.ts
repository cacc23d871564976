// Runs an API as a process: listens, closes on SIGTERM or SIGINT, and says how to exit.
import { BullpenError } from '@bullpen/contract'
import { settlesWithin } from '@bullpen/engine/node'
import type { Api } from './create-api.ts'

/** From the signal to the exit. The platform would cut off a request that takes longer anyway. */
const STOP_WITHIN_MS = 10_000

/**
 * Resolves to the code to exit with. 0: everything is closed. 1: closing took longer than 10 s, so exiting cuts off requests.
 * 2: the API did not start; one line on standard error says why. A second signal exits at once, with 1.
 *
 * Pass a function that creates the API to have errors of its creation, such as invalid settings, reported in one line as well.
 */
export async function runUntilSignalled(api: Api | (() => Promise<Api>)): Promise<0 | 1 | 2> {
  const { promise: signalled, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let stopping = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    resolve(signal)
  }
  // Before it listens, so that an early signal closes the API instead of killing the process.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  try {
    const running = await start(api)
    if (running === undefined) return 2
    running.log.info({ signal: await signalled }, 'API stopping')
    return await stop(running)
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
  }
}

async function start(created: Api | (() => Promise<Api>)): Promise<Api | undefined> {
  try {
    const api = typeof created === 'function' ? await created() : created
    const { url, metricsUrl } = await api.listen()
    // Not the board's URL, which contains the development key.
    api.log.info({ url, metricsUrl }, 'API ready')
    return api
  } catch (error) {
    console.error(`bullpen-api: ${startError(error)}`)
    return undefined
  }
}

async function stop(api: Api): Promise<0 | 1> {
  const closed = api.close()
  if (!(await settlesWithin(closed, STOP_WITHIN_MS))) {
    api.log.error({ withinMs: STOP_WITHIN_MS }, 'API not closed in time; remaining requests are cut off')
    return 1
  }
  await closed
  return 0
}

/** One line for a mistake that the message explains; a stack for an unexpected error. */
function startError(error: unknown): string {
  if (error instanceof BullpenError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
