// Uses the async context to attribute errors that escape a handler's promise, and calls to process.exit, to their attempt.
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { InnerAttempt } from './attempt.ts'

export interface UncaughtListener {
  /** Called if the error belongs to this attempt, which is still running. */
  attributed(attempt: InnerAttempt, thrown: unknown): void
  /** Called if the error belongs to an attempt that is over, or does not belong to a known attempt. */
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

  // If code that an earlier attempt left behind could exit the process, it would end the attempt that is running now.
  const exit = process.exit
  process.exit = (code) => {
    if (attempts.getStore()?.over) throw new Error(`process.exit(${code ?? ''}) was called by a task that had ended`)
    return exit(code)
  }
}
