// Handles math.primes with a sieve of Eratosthenes, one segment of numbers at a time.
import { setImmediate } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import { defineHandler } from '@bullpen/contract'
import { mathPrimes } from '@bullpen/tasks'

/** How many numbers a segment has. One byte for each fits in the cache of a core. */
const SEGMENT = 2 ** 18

/** After so many segments, some 50 ms, the handler reports its progress and lets its thread receive a cancellation. */
const SEGMENTS_PER_REPORT = 64

export default defineHandler(mathPrimes, import.meta.url, async ({ input: { below }, signal, progress }) => {
  const factors = primesUpTo(Math.floor(Math.sqrt(below)))
  const isComposite = new Uint8Array(SEGMENT)
  let primes = 0
  for (let start = 0, segments = 1; start < below; start += SEGMENT, segments++) {
    primes += primesFrom(start, Math.min(SEGMENT, below - start), factors, isComposite)
    if (segments % SEGMENTS_PER_REPORT > 0) continue
    await progress(Math.min(1, (start + SEGMENT) / below))
    await setImmediate()
    signal.throwIfAborted()
  }
  return { primes, thread: threadId }
})

/** Counts the primes among `length` numbers from `start`. `factors` are all primes up to the root of the largest. */
function primesFrom(start: number, length: number, factors: readonly number[], isComposite: Uint8Array): number {
  isComposite.fill(0)
  for (const factor of factors) {
    // A smaller multiple has a smaller factor.
    const first = Math.max(factor * factor, Math.ceil(start / factor) * factor)
    for (let at = first - start; at < length; at += factor) isComposite[at] = 1
  }
  let primes = 0
  for (let at = Math.max(0, 2 - start); at < length; at++) if (isComposite[at] === 0) primes++
  return primes
}

function primesUpTo(limit: number): readonly number[] {
  const primes: number[] = []
  for (let n = 2; n <= limit; n++) {
    if (primes.every((prime) => prime * prime > n || n % prime > 0)) primes.push(n)
  }
  return primes
}
