// Makes a short text from the definitions of a queue, by which processes notice that their catalogues differ.
import type { Catalogue } from '@bullpen/contract'
import type { Sha256 } from '../task/child-task.ts'

/** In bytes. */
const LENGTH = 6

/**
 * Returns a digest of the names, versions and kinds of each queue's definitions, by queue. It is the same in every process whose
 * definitions of the queue are the same, whatever other queues its catalogue has.
 */
export function catalogueDigests(
  { definitions }: Pick<Catalogue, 'definitions'>,
  queues: readonly string[],
  sha256: Sha256,
): Readonly<Record<string, string>> {
  const digestOf = (queue: string): string => {
    const lines = definitions
      .filter((definition) => definition.queue === queue)
      .map(({ name, version, kind }) => `${name} ${version} ${kind}`)
    const digest = sha256(lines.sort().join('\n')).subarray(0, LENGTH)
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
  }
  return Object.fromEntries(queues.map((queue) => [queue, digestOf(queue)]))
}
