// Runs a worker as the whole program: starts it, drains it on SIGTERM or SIGINT, and returns the exit code.
import process from 'node:process'
import { BullpenError, type TaskId } from '@bullpen/contract'
import { readable } from '@bullpen/engine/internal'
import type { BullpenWorker } from './create-worker.ts'
import { keepBuiltIns, restoreBuiltIns } from './kept-built-ins.ts'
import { ownProcess } from './own-process.ts'

export interface RunOptions {
  /**
   * The tasks to wait for before the worker exits, as in a batch job. If omitted, the worker runs until it is
   * signalled.
   */
  readonly only?: readonly TaskId[]
  /**
   * The id of the group to run. The worker takes no other tasks, and exits when the group has ended. Defaults to the
   * worker's setting `group`. Cannot be combined with `only`.
   */
  readonly group?: string
}

/**
 * - 0: every task finished, was requeued, or became dead because its definition sets `onInterrupt: 'fail'`.
 * - 1: tasks were abandoned (another process recovers them), their results could not be confirmed, or tasks in the
 *   given set or the given group have not ended. The log names each of these tasks, and the group. Handlers may still
 *   be running, so the process should exit.
 * - 2: the worker did not start, for example because the given group does not exist.
 * - 70: the process may be in any state, because an uncaught error did not belong to any attempt, because an inline
 *   handler has replaced built-in functions and made them read-only, or because the worker itself failed, for example its
 *   drain. The worker drained immediately, as far as it could. After lost built-in functions, it ends after 10 s at the
 *   latest, whatever its grace period is.
 */
export type ExitCode = 0 | 1 | 2 | 70

/** How long a worker whose built-in functions are lost may take to drain, in ms. */
const LOST_MS = 10_000

/**
 * Runs the worker until it has drained. Resolves with the exit code and never rejects. A second signal ends the wait
 * for running tasks. If you pass a function that creates the worker, errors during its creation, such as invalid
 * settings, are reported in one line as well.
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

async function run(worker: BullpenWorker, { only, group = worker.group }: RunOptions): Promise<ExitCode> {
  if (only !== undefined && group !== undefined) {
    throw new BullpenError(
      'invalid_configuration',
      `invalid configuration: a worker runs either the given tasks (only) or the group ${group} (BULLPEN_WORKER_GROUP), not both; pass only one of them`,
    )
  }
  const { emit } = process
  const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis
  const exitNow = Reflect.get(process, 'reallyExit').bind(process, 70) as () => void
  const escalate = new AbortController()
  const { promise: stopped, resolve: stop } = Promise.withResolvers<
    NodeJS.Signals | 'uncaught error' | 'lost built-ins'
  >()
  let signalled = false
  let broken = false
  let lastResort: NodeJS.Timeout | undefined
  const isFromHandler = (act: string): boolean =>
    worker.attributeUncaught(new Error(`the handler ${act}`)) !== 'unattributed'
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isFromHandler(`sent ${signal} to its own worker`)) return
    if (signalled) escalate.abort()
    signalled = true
    stop(signal)
  }
  const drainNow = (reason: 'uncaught error' | 'lost built-ins'): void => {
    broken = true
    // If a drain is already under way, it must end as broken too.
    if (isDraining(worker)) void worker.drain({ broken })
    escalate.abort()
    stop(reason)
  }
  const onUncaught = (err: unknown): void => {
    // The drain needs them, and the error may be a consequence.
    restoreBuiltIns()
    if (worker.attributeUncaught(err) !== 'unattributed') return
    worker.log.error({ err: readable(err) }, 'uncaught error outside any attempt: draining immediately')
    drainNow('uncaught error')
  }
  const onLost = (names: string): void => {
    try {
      lastResort = startTimer(exitNow, LOST_MS)
      worker.log.error({}, `inline handler has replaced ${names} for good: draining immediately`)
      // Without this method, no uncaught error reaches the worker, and the next one ends it with another code.
      if (process.emit !== emit) exitNow()
      drainNow('lost built-ins')
    } catch {
      exitNow()
    }
  }
  // The listeners are added before the start, so that a signal during the opening of resources also leads to a graceful
  // end.
  const release = ownProcess(
    { SIGTERM: onSignal, SIGINT: onSignal, uncaughtException: onUncaught, unhandledRejection: onUncaught },
    isFromHandler,
  )
  const releaseBuiltIns = keepBuiltIns(worker.log, onLost)
  try {
    let left = only ?? []
    let hasGroupEnded = group === undefined
    const begin = async (): Promise<void> => {
      if (group !== undefined) hasGroupEnded = (await worker.online({ group })).group.state === 'ended'
      else if (only !== undefined) left = (await worker.online(only)).left
      else await start(worker)
    }
    const started = begin().then(
      () => undefined,
      (error: unknown) => (wasDrained(worker, error) ? undefined : { error }),
    )
    // `start` keeps waiting for as long as Redis is unreachable, and a signal must not wait for `start`.
    const first = await Promise.race([started, stopped])
    if (typeof first === 'object') {
      worker.log.error({}, notStarted(first.error))
      return 2
    }
    // A worker also ends without a signal: when its set of tasks or its group has ended, when its parent closes, or on
    // a remote command.
    const signal = await Promise.race([stopped, worker.ended])
    if (typeof signal === 'string') worker.log.info({ signal }, 'draining')
    const { abandoned, unconfirmed } = await worker.drain({ escalate: escalate.signal, broken })
    if (only !== undefined || group !== undefined) await started
    for (const id of left) worker.log.error({ id }, 'task in the given set has not ended')
    if (!hasGroupEnded) worker.log.error({ id: group }, 'group has not ended')
    if (broken) return 70
    return hasGroupEnded && abandoned.length + unconfirmed.length + left.length === 0 ? 0 : 1
  } catch (err) {
    worker.log.error({ err: readable(err) }, 'worker failed')
    return 70
  } finally {
    stopTimer(lastResort)
    releaseBuiltIns()
    release()
  }
}

async function start(worker: BullpenWorker): Promise<void> {
  const { url } = await worker.start()
  worker.log.info({ url }, 'worker ready')
}

function isDraining(worker: BullpenWorker): boolean {
  return worker.state() === 'draining' || worker.state() === 'closed'
}

/**
 * Returns whether a drain interrupted the start, for example because of a signal or the parent. Such a start is not a
 * failure.
 */
function wasDrained(worker: BullpenWorker, error: unknown): boolean {
  return error instanceof BullpenError && error.code === 'wrong_state' && isDraining(worker)
}

function notStarted(error: unknown): string {
  return `worker did not start: ${error instanceof Error ? error.message : String(error)}`
}
