// A catalogue: the task definitions that producers and workers of one system share.
import { BullpenError } from '../errors/errors.ts'
import { nearest } from './nearest.ts'
import type { OnShutdown } from './queue.ts'
import type { TaskDefinition } from './task-definition.ts'

export interface Catalogue<D extends TaskDefinition = TaskDefinition> {
  readonly definitions: readonly D[]
  /** The names of the queues that hold these tasks, each once, in the order of first use. */
  readonly queues: readonly string[]
  /** What becomes of a queue's waiting tasks when its whole fleet is drained. `keep` for a queue that it does not use. */
  onShutdown(queue: string): OnShutdown
  /** The definition by its name. @throws BullpenError `unknown_task`, naming the nearest known one. */
  get(name: string): D
  has(name: string): boolean
}

export type DefinitionsOf<C extends Catalogue> = C['definitions'][number]
export type NamesOf<C extends Catalogue> = DefinitionsOf<C>['name']

/**
 * @throws BullpenError `invalid_definition` when two definitions have one name, or say different things of their queue, or
 * when there is none.
 */
export function defineCatalogue<const D extends readonly [TaskDefinition, ...TaskDefinition[]]>(
  ...definitions: D
): Catalogue<D[number]> {
  const byName = new Map<string, D[number]>()
  const onShutdown = new Map<string, OnShutdown>()
  for (const definition of definitions) {
    if (typeof definition?.name !== 'string' || typeof definition.queue !== 'string') {
      throw new BullpenError(
        'invalid_definition',
        'a catalogue is made of what defineTask returned: defineCatalogue(first, second)',
      )
    }
    if (byName.has(definition.name)) {
      throw new BullpenError(
        'invalid_definition',
        `two definitions are named '${definition.name}'; a name is used once`,
      )
    }
    const said = onShutdown.get(definition.queue) ?? definition.onShutdown
    if (said !== definition.onShutdown) {
      throw new BullpenError(
        'invalid_definition',
        `onShutdown of the queue '${definition.queue}' is '${said}', and '${definition.onShutdown}' where '${definition.name}' is defined; give all of its tasks what one defineQueue returned`,
      )
    }
    onShutdown.set(definition.queue, said)
    byName.set(definition.name, definition)
  }
  if (byName.size === 0) throw new BullpenError('invalid_definition', 'a catalogue holds at least one definition')
  return Object.freeze({
    definitions: Object.freeze([...definitions]),
    queues: Object.freeze([...new Set(definitions.map((definition) => definition.queue))]),
    onShutdown: (queue: string) => onShutdown.get(queue) ?? 'keep',
    has: (name: string) => byName.has(name),
    get(name: string): D[number] {
      const definition = byName.get(name)
      if (definition === undefined) {
        const hint = nearest(name, [...byName.keys()])
        throw new BullpenError(
          'unknown_task',
          `no task is named ${JSON.stringify(name)}${hint === undefined ? '' : `; did you mean '${hint}'?`}`,
        )
      }
      return definition
    },
  })
}
