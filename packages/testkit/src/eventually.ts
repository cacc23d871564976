// Waits for a condition that no signal reports, such as the state of another process.

const EVERY_MS = 10

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/**
 * Calls `look` repeatedly and resolves with the first truthy value that it returns. Rejects after `withinMs`, which defaults to
 * 60,000, with the last value or error as the cause.
 */
export async function eventually<T>(look: () => T | Promise<T>, withinMs = 60_000): Promise<Truthy<T>> {
  const deadline = performance.now() + withinMs
  let last: unknown
  do {
    try {
      const seen = await look()
      if (seen) return seen as Truthy<T>
      last = seen
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  } while (performance.now() < deadline)
  throw new Error(`the condition was not met within ${withinMs} ms`, { cause: last })
}
