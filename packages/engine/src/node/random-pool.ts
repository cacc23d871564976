// Provides random bytes for ids from a pool, because each call to the system's generator costs as much as generating hundreds of
// bytes.
import { randomBytes } from 'node:crypto'

/** How many bytes the pool generates at once. An id takes 10 of them. */
const POOL_BYTES = 4_096

/**
 * Returns a function that returns `size` random bytes, and never returns the same bytes twice. The bytes are cryptographically
 * random, but stay in memory until the pool is used up, so do not use them for secrets.
 */
export function createRandomPool(): (size: number) => Uint8Array {
  let pool = new Uint8Array(0)
  let used = 0
  return (size) => {
    if (used + size > pool.length) {
      // The pool gets a new array, because callers may still hold parts of the old one.
      pool = randomBytes(Math.max(size, POOL_BYTES))
      used = 0
    }
    used += size
    return pool.subarray(used - size, used)
  }
}
