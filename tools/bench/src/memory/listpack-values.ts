// Repeats a measurement of memory with Redis's default settings and with those that Bullpen recommends.
import type { Redis } from 'ioredis'

/** Up to which size of a value, in bytes, Redis stores a hash compactly. Redis's default is 64. */
export const LISTPACK_SETTING = 'hash-max-listpack-value'
const VALUES = [64, 1_024] as const

/** Yields what `measure` yields for each value of the setting, and then restores the setting. */
export async function* atListpackValues<T>(
  redis: Redis,
  measure: (listpackValue: number) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const [, before = ''] = (await redis.config('GET', LISTPACK_SETTING)) as readonly string[]
  try {
    for (const value of VALUES) {
      await redis.config('SET', LISTPACK_SETTING, value)
      yield* measure(value)
    }
  } finally {
    await redis.config('SET', LISTPACK_SETTING, before)
  }
}
