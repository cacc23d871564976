// A clock that all threads of a process read alike: each thread's own counts from its own start.
import { performance } from 'node:perf_hooks'

const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Milliseconds in 32 bits, which run over: to be compared with {@link msBetween} alone. */
export function machineMs(): number {
  return (performance.now() + offset) | 0
}

/** Right for spans of up to 24 days. */
export function msBetween(earlier: number, later: number): number {
  return (later - earlier) | 0
}
