// Random bytes for ids from a pool, because each call to the system's generator costs as much as hundreds of bytes.
import { randomBytes } from 'node:crypto'

/** How many bytes the pool gets at once. Those of one id are 10. */
const POOL_BYTES = 4_096

/**
 * Returns a function that returns `size` random bytes, which it returns only once. The bytes are cryptographically random, but
 * stay in memory until the pool is used up, so do not use them for secrets.
 */
export function createRandomPool(): (size: number) => Uint8Array {
  let pool = new Uint8Array(0)
  let used = 0
  return (size) => {
    if (used + size > pool.length) {
      // A new array, because callers may still have parts of the old one.
      pool = randomBytes(Math.max(size, POOL_BYTES))
      used = 0
    }
    used += size
    return pool.subarray(used - size, used)
  }
}
