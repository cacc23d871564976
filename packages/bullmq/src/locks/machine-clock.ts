// Provides a clock that all of a process's threads share. `performance.now()` is not such a clock, because it counts from the
// start of its own thread.
import { performance } from 'node:perf_hooks'

const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Returns the time in milliseconds, in 32 bits. The value overflows, so compare two of them only with {@link msBetween}. */
export function machineMs(): number {
  return (performance.now() + offset) | 0
}

/** Returns the milliseconds between two times. Correct for spans of up to 24 days. */
export function msBetween(earlier: number, later: number): number {
  return (later - earlier) | 0
}
