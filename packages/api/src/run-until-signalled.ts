// Runs an API as a process: listens, closes on SIGTERM or SIGINT, and returns the exit code.
import { BullpenError } from '@bullpen/contract'
import { settlesWithin } from '@bullpen/engine/node'
import type { Api } from './create-api.ts'

/** The time limit from the signal to the exit. If a request takes longer, the platform would cut it off anyway. */
const STOP_WITHIN_MS = 10_000

/**
 * Runs the API until a signal stops it, and resolves with the exit code. 0 means that everything is closed. 1 means that
 * closing took longer than 10 s, so that exiting cuts off requests. 2 means that the API did not start, in which case one line
 * on standard error contains the reason. A second signal exits at once with code 1.
 *
 * In development, if no development key is set, the key that the API generates and a link that logs a browser in are printed on
 * standard error. Neither is logged.
 *
 * If you pass a function that creates the API, errors during its creation, such as invalid settings, are also reported in one line.
 */
export async function runUntilSignalled(api: Api | (() => Promise<Api>)): Promise<0 | 1 | 2> {
  const { promise: signalled, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let stopping = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    resolve(signal)
  }
  // The handlers are added before the API listens, so that an early signal closes the API instead of killing the process.
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
    const { url, metricsUrl, boardUrl, generatedKey } = await api.listen()
    // The board's URL is not logged, because it contains the development key.
    api.log.info({ url, metricsUrl }, 'API listening')
    void api.ready().then((isReady) => {
      if (isReady) api.log.info({ url, metricsUrl }, 'API ready')
    })
    if (generatedKey !== undefined) console.error(developmentKeyText(generatedKey, boardUrl))
    return api
  } catch (error) {
    console.error(`bullpen-api: ${startError(error)}`)
    return undefined
  }
}

/** Returns the lines that a developer needs in order to call the API with a key that exists only in this process. */
function developmentKeyText(key: string, boardUrl: string): string {
  return [
    `bullpen-api: generated the API key ${key}, which is accepted only from this machine and until this process exits`,
    `bullpen-api: to log in to the board with this key, open ${boardUrl}`,
  ].join('\n')
}

async function stop(api: Api): Promise<0 | 1> {
  const closed = api.close()
  if (!(await settlesWithin(closed, STOP_WITHIN_MS))) {
    api.log.error({ withinMs: STOP_WITHIN_MS }, 'API did not close in time; cutting off the remaining requests')
    return 1
  }
  await closed
  return 0
}

/** Returns one line for a mistake that the message explains, and a stack trace for an unexpected error. */
function startError(error: unknown): string {
  if (error instanceof BullpenError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
