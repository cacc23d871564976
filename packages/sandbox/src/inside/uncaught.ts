// Attributes errors that escape a handler's promise, and calls of process.exit, to their attempt by the async context.
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { InnerAttempt } from './attempt.ts'

export interface UncaughtListener {
  /** The error belongs to this attempt, which still runs. */
  attributed(attempt: InnerAttempt, thrown: unknown): void
  /** The error belongs to an attempt that is over, or to none that is known. */
  late(attempt: InnerAttempt | undefined, thrown: unknown): void
}

export function watchUncaught(attempts: AsyncLocalStorage<InnerAttempt>, { attributed, late }: UncaughtListener): void {
  const onUncaught = (thrown: unknown): void => {
    const attempt = attempts.getStore()
    if (attempt === undefined || attempt.over) late(attempt, thrown)
    else attributed(attempt, thrown)
  }
  process.on('uncaughtException', onUncaught)
  process.on('unhandledRejection', onUncaught)

  // An exit by code that an earlier attempt left behind would end the attempt that runs now.
  const exit = process.exit
  process.exit = (code) => {
    if (attempts.getStore()?.over) throw new Error(`process.exit(${code ?? ''}) was called by a task that had ended`)
    return exit(code)
  }
}
