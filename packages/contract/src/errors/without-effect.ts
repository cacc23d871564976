// Notes on an error that the failed call has changed nothing.
import { BullpenError } from './errors.ts'

/** Returns the error of a call that is known to have had no effect. Only `redis_unavailable` does not say so itself. */
export function withoutEffect(error: unknown): unknown {
  if (!(error instanceof BullpenError) || error.code !== 'redis_unavailable' || error.hadNoEffect) return error
  const { code, message, cause } = error
  return new BullpenError(code, message, { cause, hadNoEffect: true })
}
