// Runs a worker as a process: started, drained on SIGTERM or SIGINT, hurried by a second signal, with an exit code.
import type { BullpenWorker } from './create-worker.ts'

/**
 * Resolves with the code to exit with. 0: all ended well. 1: tasks were abandoned, which others will recover; the log names
 * each, and only an exit stops them. Rejects when the worker can't start.
 */
export async function runUntilSignalled(worker: BullpenWorker): Promise<0 | 1> {
  const hurry = new AbortController()
  const { promise: signalled, resolve } = Promise.withResolvers<NodeJS.Signals>()
  const onSignal = (signal: NodeJS.Signals): void => {
    resolve(signal)
    if (draining) hurry.abort()
    draining = true
  }
  let draining = false
  // Before the start, so that a signal that comes while resources open still ends in an orderly way.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  const starting = worker.start().then(({ url }) => worker.log.info({ url }, 'worker ready'))
  // With Redis away the start takes as long as it takes, and a signal must not wait for it.
  await Promise.race([starting, signalled])
  const signal = await signalled
  worker.log.info({ signal }, 'draining')
  const { abandoned } = await worker.drain(hurry.signal)
  worker.log.info({ abandoned: abandoned.length }, 'drained')
  process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
  return abandoned.length === 0 ? 0 : 1
}
