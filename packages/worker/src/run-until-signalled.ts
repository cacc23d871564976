// Runs a worker as the whole program: starts it, drains it on SIGTERM or SIGINT, and says which code to exit with.
import { BullpenError, type TaskId } from '@bullpen/contract'
import type { BullpenWorker } from './create-worker.ts'

export interface RunOptions {
  /** Works this set of tasks and ends, as a batch job does. Left out: works until a signal comes. */
  readonly only?: readonly TaskId[]
}

/**
 * - 0: every task finished or was requeued.
 * - 1: tasks were abandoned (another process recovers them), their results could not be confirmed, or part of the given set is
 *   unfinished. The log names each task. Handlers may still run: exit.
 * - 2: the worker did not start.
 * - 70: an error escaped that belongs to no attempt, so the process may be in any state. It drained at once.
 */
export type ExitCode = 0 | 1 | 2 | 70

/**
 * Resolves with the code to exit with; never rejects. A second signal ends the wait for running tasks. Pass a function that
 * creates the worker to have errors of its creation, such as invalid settings, reported in one line as well.
 */
export async function runUntilSignalled(
  worker: BullpenWorker | (() => BullpenWorker),
  options: RunOptions = {},
): Promise<ExitCode> {
  try {
    return await run(typeof worker === 'function' ? worker() : worker, options)
  } catch (error) {
    console.error(notStarted(error))
    return 2
  }
}

async function run(worker: BullpenWorker, { only }: RunOptions): Promise<ExitCode> {
  const escalate = new AbortController()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<NodeJS.Signals | 'uncaught error'>()
  let signalled = false
  let broken = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) escalate.abort()
    signalled = true
    stop(signal)
  }
  const onUncaught = (err: unknown): void => {
    if (worker.attributeUncaught(err) !== 'unattributed') return
    worker.log.error({ err }, 'uncaught error outside any attempt: draining at once')
    broken = true
    // A drain that is under way is to end as broken too.
    if (isDraining(worker)) void worker.drain({ broken })
    escalate.abort()
    stop('uncaught error')
  }
  // Before the start: a signal that comes while resources open also ends in an orderly way.
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)
  try {
    let left = only ?? []
    const running = only === undefined ? start(worker) : worker.online(only).then((summary) => (left = summary.left))
    const started = running.then(
      () => undefined,
      (error: unknown) => (wasDrained(worker, error) ? undefined : { error }),
    )
    // While Redis is away the start takes as long as it takes, and a signal must not wait for it.
    const first = await Promise.race([started, stopped])
    if (typeof first === 'object') {
      worker.log.error({}, notStarted(first.error))
      return 2
    }
    // A worker also ends by itself: when its set has ended, when its parent has closed, or by a remote command.
    const signal = await Promise.race([stopped, worker.ended])
    if (typeof signal === 'string') worker.log.info({ signal }, 'draining')
    const { abandoned, unconfirmed } = await worker.drain({ escalate: escalate.signal, broken })
    if (only !== undefined) await started
    for (const id of left) worker.log.error({ id }, 'task of the given set has not ended')
    if (broken) return 70
    return abandoned.length + unconfirmed.length + left.length === 0 ? 0 : 1
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
    process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught)
  }
}

async function start(worker: BullpenWorker): Promise<void> {
  const { url } = await worker.start()
  worker.log.info({ url }, 'worker ready')
}

function isDraining(worker: BullpenWorker): boolean {
  return worker.state() === 'draining' || worker.state() === 'closed'
}

/** A start that was ended by a drain, by a signal or the parent, has not failed. */
function wasDrained(worker: BullpenWorker, error: unknown): boolean {
  return error instanceof BullpenError && error.code === 'wrong_state' && isDraining(worker)
}

function notStarted(error: unknown): string {
  return `worker did not start: ${error instanceof Error ? error.message : String(error)}`
}
