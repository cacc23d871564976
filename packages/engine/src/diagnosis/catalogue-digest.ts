// Makes a short text from the definitions of a queue, by which processes notice that their catalogues differ.
import type { Catalogue, QueueDefinition, TaskDefinition } from '@bullpen/contract'
import { hex, type Sha256 } from '../task/digest.ts'

/** In bytes. */
const LENGTH = 6

/**
 * Returns a digest of each queue's definitions, by queue: of the names, versions and kinds of the tasks, of what they need to
 * start, and of what the queue has of it: the turns and limits of concurrency keys, permits, caps and circuit breakers. It is
 * the same in every process whose definitions of the queue are the same, whatever other queues its catalogue has.
 */
export function catalogueDigests(
  { definitions, queue: definitionOf }: Pick<Catalogue, 'definitions' | 'queue'>,
  queues: readonly string[],
  sha256: Sha256,
): Readonly<Record<string, string>> {
  const digestOf = (queue: string): string => {
    const tasks = definitions.filter((definition) => definition.queue === queue)
    const kinds = tasks.map(({ name, version, kind }) => `${name} ${version} ${kind}`)
    const settings = definitionOf(queue)
    const lines = [
      ...kinds.sort(),
      ...keyLines(settings),
      ...limiterLines(settings),
      ...tasks.flatMap(needLines).sort(),
    ]
    return hex(sha256(lines.join('\n')).subarray(0, LENGTH))
  }
  return Object.fromEntries(queues.map((queue) => [queue, digestOf(queue)]))
}

/** There are no lines if the keys take no turns, so that the digest is then the same as that of a version without turns. */
function keyLines({ fairness, perConcurrencyKey }: QueueDefinition): readonly string[] {
  return fairness === undefined ? [] : [`keys ${JSON.stringify([fairness, perConcurrencyKey], sorted)}`]
}

function limiterLines({ permits, breakers }: QueueDefinition): readonly string[] {
  const limiters = [permits, breakers]
  return limiters.every(isEmpty) ? [] : [`limiters ${JSON.stringify(limiters.map(orNothing), sorted)}`]
}

/** As with the keys, a task that needs nothing has no line. */
function needLines({ name, permits, concurrency, dependsOn }: TaskDefinition): readonly string[] {
  if (isEmpty(permits) && concurrency === undefined && dependsOn.length === 0) return []
  return [`needs ${name} ${JSON.stringify([permits, concurrency, dependsOn.toSorted()], sorted)}`]
}

const isEmpty = (record: object | undefined): boolean => Object.keys(record ?? {}).length === 0

/** An empty record says the same as none. */
const orNothing = (record: object | undefined): object => record ?? {}

/** Sorts the fields of an object, whose order a catalogue may choose freely. */
function sorted(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
