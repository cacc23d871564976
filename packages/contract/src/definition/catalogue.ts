// Defines the catalogue, which contains the task definitions that a system's producers and workers share.
import { BullpenError } from '../errors/errors.ts'
import { suggestion } from './nearest.ts'
import type { OnShutdown } from './queue.ts'
import type { QueueRetention } from './retention.ts'
import type { TaskDefinition } from './task-definition.ts'

export interface Catalogue<D extends TaskDefinition = TaskDefinition> {
  readonly definitions: readonly D[]
  /** The names of the queues that the definitions use, in the order of first use. */
  readonly queues: readonly string[]
  /**
   * Returns what happens to a queue's waiting tasks when its whole fleet is drained. The result is `keep` if the queue is
   * unknown.
   */
  onShutdown(queue: string): OnShutdown
  /** Returns the retention that the queue's definition sets, which is empty if it sets none or the queue is unknown. */
  retention(queue: string): QueueRetention
  /** Returns the definition with this name. @throws BullpenError `unknown_task`, with the nearest name as a suggestion. */
  get(name: string): D
  has(name: string): boolean
}

export type DefinitionsOf<C extends Catalogue> = C['definitions'][number]
export type NamesOf<C extends Catalogue> = DefinitionsOf<C>['name']

/**
 * Collects task definitions into a catalogue. Producers and workers import the same catalogue.
 *
 * @example
 * export const catalogue = defineCatalogue(welcome, receipt)
 * @throws BullpenError `invalid_definition` if no definition is given, if two definitions have the same name, or if two of
 * them define the same queue differently.
 */
export function defineCatalogue<const D extends readonly [TaskDefinition, ...TaskDefinition[]]>(
  ...definitions: D
): Catalogue<D[number]> {
  const byName = new Map<string, D[number]>()
  const firstOf = new Map<string, D[number]>()
  for (const definition of definitions) {
    if (typeof definition?.name !== 'string' || typeof definition.queue !== 'string') {
      throw new BullpenError(
        'invalid_definition',
        'expected every argument to be a definition from defineTask, as in defineCatalogue(first, second)',
      )
    }
    if (byName.has(definition.name)) {
      throw new BullpenError(
        'invalid_definition',
        `two definitions are named '${definition.name}'; names must be unique`,
      )
    }
    const first = firstOf.get(definition.queue) ?? definition
    const different = (['onShutdown', 'retention'] as const).find((setting) => first[setting] !== definition[setting])
    if (different !== undefined) {
      throw new BullpenError(
        'invalid_definition',
        `${different} of queue '${definition.queue}' is ${JSON.stringify(first[different])} in '${first.name}' and ${JSON.stringify(definition[different])} in '${definition.name}'; use the same defineQueue result in all of the queue's task definitions`,
      )
    }
    firstOf.set(definition.queue, first)
    byName.set(definition.name, definition)
  }
  if (byName.size === 0) throw new BullpenError('invalid_definition', 'a catalogue needs at least one definition')
  return Object.freeze({
    definitions: Object.freeze([...definitions]),
    queues: Object.freeze([...new Set(definitions.map((definition) => definition.queue))]),
    onShutdown: (queue: string) => firstOf.get(queue)?.onShutdown ?? 'keep',
    retention: (queue: string) => firstOf.get(queue)?.retention ?? {},
    has: (name: string) => byName.has(name),
    get(name: string): D[number] {
      const definition = byName.get(name)
      if (definition === undefined) {
        const known = [...byName.keys()]
        throw new BullpenError('unknown_task', `unknown task ${JSON.stringify(name)}${suggestion(name, known)}`)
      }
      return definition
    },
  })
}
