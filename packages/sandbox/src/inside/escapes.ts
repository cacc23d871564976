// Errors that escape a handler's promise, and the exits that it calls: found again through the async context.
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { InnerAttempt } from './attempt.ts'

export interface EscapeListener {
  /** It belongs to this attempt, which still runs. */
  charged(attempt: InnerAttempt, thrown: unknown): void
  /** It belongs to an attempt that is over, or to nobody known. */
  late(attempt: InnerAttempt | undefined, thrown: unknown): void
}

export function watchEscapes(attempts: AsyncLocalStorage<InnerAttempt>, { charged, late }: EscapeListener): void {
  const escaped = (thrown: unknown): void => {
    const attempt = attempts.getStore()
    if (attempt === undefined || attempt.over) late(attempt, thrown)
    else charged(attempt, thrown)
  }
  process.on('uncaughtException', escaped)
  process.on('unhandledRejection', escaped)

  // An exit by code that an earlier task left behind would end the task that runs now.
  const exit = process.exit
  process.exit = (code) => {
    if (attempts.getStore()?.over) throw new Error(`process.exit(${code ?? ''}) was called by a task that had ended`)
    return exit(code)
  }
}
