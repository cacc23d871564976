// Waits until a condition holds: for what no signal tells of, such as another process.

const EVERY_MS = 10

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/** The first truthy value that `look` gives. Rejects after `withinMs` with the last thing that went wrong. */
export async function eventually<T>(look: () => T | Promise<T>, withinMs = 10_000): Promise<Truthy<T>> {
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
  throw new Error(`it did not come true within ${withinMs} ms`, { cause: last })
}
