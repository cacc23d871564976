// Enqueues many tasks as fast as Redis accepts them.

const IN_FLIGHT = 64

/**
 * Calls `enqueue` with the numbers from 0 to `count`, in this order. Resolves with the ids of the accepted tasks, in about this order. A
 * rejected task cannot be lost, because its caller is responsible for repeating it.
 */
export async function inBurst(count: number, enqueue: (n: number) => Promise<string>): Promise<readonly string[]> {
  const ids: string[] = []
  let next = 0
  const enqueueNext = async (): Promise<void> => {
    while (next < count) {
      const id = await enqueue(next++).catch(() => undefined)
      if (id !== undefined) ids.push(id)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, enqueueNext))
  return ids
}
