// Reads several values from Redis as of the same moment.
import type { ChainableCommander } from 'ioredis'
import type { Commander } from '../scripts/script.ts'

/** Takes one transaction and one round trip. Rejects if any of the commands fails. */
export async function readTogether(
  redis: Commander,
  addCommands: (transaction: ChainableCommander) => void,
): Promise<unknown[]> {
  const transaction = redis.multi()
  addCommands(transaction)
  return answersOf(await transaction.exec())
}

/** Returns the answers of a transaction or pipeline, or throws the first error among them. */
export function answersOf(results: Awaited<ReturnType<ChainableCommander['exec']>>): unknown[] {
  return (results ?? []).map(([error, answer]) => {
    if (error !== null) throw error
    return answer
  })
}
