// Runs a worker as a process: started, drained on SIGTERM or SIGINT, hurried by a second signal, with an exit code.
import type { TaskId } from '@bullpen/contract'
import type { BullpenWorker } from './create-worker.ts'

/**
 * `only`: works this set of tasks and ends, as a batch job does; otherwise until a signal comes.
 *
 * Resolves with the code to exit with. 0: all ended well. 1: tasks were abandoned, which others will recover, or have ended
 * and that could not be written down, or some of the given set have not ended; the log names each, and only an exit stops them. 70: an error escaped that belongs to no attempt,
 * so that nobody knows what is broken; the process has drained at once, for its supervisor to start it again. Rejects when
 * the worker can't start.
 */
export async function runUntilSignalled(
  worker: BullpenWorker,
  { only }: { readonly only?: readonly TaskId[] } = {},
): Promise<0 | 1 | 70> {
  const hurry = new AbortController()
  const { promise: told, resolve } = Promise.withResolvers<NodeJS.Signals | 'escaped error'>()
  let draining = false
  let broken = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (draining) hurry.abort()
    draining = true
    resolve(signal)
  }
  const onEscape = (err: unknown): void => {
    if (worker.escaped(err) !== 'unattributed') return
    worker.log.error({ err }, 'an error escaped that belongs to no attempt: draining at once')
    broken = true
    // Of a drain that is under way, too.
    if (draining || worker.ending()) void worker.drain({ broken })
    hurry.abort()
    resolve('escaped error')
  }
  // Before the start, so that a signal that comes while resources open still ends in an orderly way.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  process.on('uncaughtException', onEscape).on('unhandledRejection', onEscape)
  let left = only ?? []
  const running = only === undefined ? start(worker) : worker.online(only).then((report) => (left = report.left))
  // A start that fails since the worker was told to end meanwhile has not failed.
  const started = running.catch((error: unknown) => {
    if (!worker.ending()) throw error
  })
  // With Redis away the start takes as long as it takes, and a signal must not wait for it.
  await Promise.race([started, told])
  // A worker that has its set, or whose parent has closed, ends by itself.
  const signal = await Promise.race([told, worker.ended])
  if (typeof signal === 'string') worker.log.info({ signal }, 'draining')
  const { abandoned, unconfirmed } = await worker.drain({ hurry: hurry.signal, broken })
  if (only !== undefined) await started
  for (const id of left) worker.log.error({ id }, 'left: this task of the given set has not ended')
  process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
  process.off('uncaughtException', onEscape).off('unhandledRejection', onEscape)
  if (broken) return 70
  return abandoned.length === 0 && unconfirmed.length === 0 && left.length === 0 ? 0 : 1
}

async function start(worker: BullpenWorker): Promise<void> {
  const { url } = await worker.start()
  worker.log.info({ url }, 'worker ready')
}
