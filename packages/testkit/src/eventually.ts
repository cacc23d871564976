// Waits until a condition holds: for what no signal tells of, such as another process.

const EVERY_MS = 10

/** The first truthy value that `look` gives. Rejects after `withinMs` with the last thing that went wrong. */
export async function eventually<T>(look: () => T | Promise<T>, withinMs = 10_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs
  let last: unknown
  do {
    try {
      const seen = await look()
      if (seen) return seen
      last = seen
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  } while (performance.now() < deadline)
  throw new Error(`it did not come true within ${withinMs} ms`, { cause: last })
}
