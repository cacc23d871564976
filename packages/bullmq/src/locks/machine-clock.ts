// A clock that all threads of a process share. It is needed because `performance.now()` counts from the start of its own thread.
import { performance } from 'node:perf_hooks'

const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Milliseconds in 32 bits. They overflow, so compare them only with {@link msBetween}. */
export function machineMs(): number {
  return (performance.now() + offset) | 0
}

/** Correct for spans of up to 24 days. */
export function msBetween(earlier: number, later: number): number {
  return (later - earlier) | 0
}
