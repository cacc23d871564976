// Defines the catalogue, which contains the task definitions that a system's producers and workers share.
import { BullpenError } from '../errors/errors.ts'
import type { ScheduleDefinition } from '../schedule/schedule-definition.ts'
import { suggestion } from './nearest.ts'
import { defaultQueue, type QueueDefinition } from './queue.ts'
import type { TaskDefinition } from './task-definition.ts'

export interface Catalogue<D extends TaskDefinition = TaskDefinition> {
  readonly definitions: readonly D[]
  /** The names of the queues that the definitions use, in the order of first use. */
  readonly queues: readonly string[]
  /** The schedules, which `bullpen schedules sync` stores. */
  readonly schedules: readonly ScheduleDefinition[]
  /** Returns the settings of a queue. An unknown queue has the defaults. */
  queue(name: string): QueueDefinition
  /** Returns the definition with this name. @throws BullpenError `unknown_task`, with the nearest name as a suggestion. */
  get(name: string): D
  has(name: string): boolean
}

export type DefinitionsOf<C extends Catalogue> = C['definitions'][number]
export type NamesOf<C extends Catalogue> = DefinitionsOf<C>['name']

const QUEUE_SETTINGS = [
  'onShutdown',
  'idempotencyLifeS',
  'retention',
  'limits',
  'whenFull',
] as const satisfies readonly (keyof QueueDefinition)[]

/** What {@link defineCatalogue} accepts: task definitions and schedules. */
type Entry = TaskDefinition | ScheduleDefinition

/**
 * Collects task definitions, and the schedules that enqueue them, into a catalogue. Producers and workers import the same catalogue.
 *
 * @example
 * export const catalogue = defineCatalogue(welcome, receipt, nightlyReport)
 * @throws BullpenError `invalid_definition` if no task definition is given, if two definitions or two schedules have the same name, if
 * two definitions define the same queue differently, or if a schedule's task is not in the catalogue.
 */
export function defineCatalogue<const E extends readonly [Entry, ...Entry[]]>(
  ...entries: E
): Catalogue<Extract<E[number], TaskDefinition>> {
  type D = Extract<E[number], TaskDefinition>
  const schedules = entries.filter(
    (entry): entry is Extract<E[number], ScheduleDefinition> => entry?.kind === 'schedule',
  )
  const definitions = entries.filter((entry): entry is D => entry?.kind !== 'schedule')
  const byName = new Map<string, D>()
  const firstOf = new Map<string, D>()
  for (const definition of definitions) {
    if (typeof definition?.name !== 'string' || typeof definition.queue !== 'string') {
      throw new BullpenError(
        'invalid_definition',
        'expected every argument to be a definition from defineTask or defineSchedule, as in defineCatalogue(first, second)',
      )
    }
    if (byName.has(definition.name)) {
      throw new BullpenError(
        'invalid_definition',
        `two definitions are named '${definition.name}'; names must be unique`,
      )
    }
    const { queueSettings, queue } = definition
    const first = firstOf.get(queue) ?? definition
    const different = QUEUE_SETTINGS.find((setting) => first.queueSettings[setting] !== queueSettings[setting])
    if (different !== undefined) {
      throw new BullpenError(
        'invalid_definition',
        `${different} of queue '${queue}' is ${JSON.stringify(first.queueSettings[different])} in '${first.name}' and ${JSON.stringify(queueSettings[different])} in '${definition.name}'; use the same defineQueue result in all of the queue's task definitions`,
      )
    }
    firstOf.set(queue, first)
    byName.set(definition.name, definition)
  }
  if (byName.size === 0) throw new BullpenError('invalid_definition', 'a catalogue needs at least one definition')
  checkSchedules(schedules, byName)
  return Object.freeze({
    definitions: Object.freeze([...definitions]),
    schedules: Object.freeze([...schedules]),
    queues: Object.freeze([...new Set(definitions.map((definition) => definition.queue))]),
    queue: (name: string) => firstOf.get(name)?.queueSettings ?? defaultQueue(name),
    has: (name: string) => byName.has(name),
    get(name: string): D {
      const definition = byName.get(name)
      if (definition === undefined) {
        const known = [...byName.keys()]
        throw new BullpenError('unknown_task', `unknown task ${JSON.stringify(name)}${suggestion(name, known)}`)
      }
      return definition
    },
  })
}

function checkSchedules(schedules: readonly ScheduleDefinition[], tasks: ReadonlyMap<string, TaskDefinition>): void {
  const names = new Set<string>()
  for (const { name, task } of schedules) {
    if (names.has(name)) {
      throw new BullpenError('invalid_definition', `two schedules are named '${name}'; names must be unique`)
    }
    if (tasks.get(task.name) !== task) {
      throw new BullpenError(
        'invalid_definition',
        `schedule '${name}' enqueues '${task.name}', which is not in the catalogue; pass that definition to defineCatalogue, too`,
      )
    }
    names.add(name)
  }
}
