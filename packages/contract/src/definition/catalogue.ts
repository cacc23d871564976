// Defines the catalogue, which contains the task definitions that a system's producers and workers share.
import { BullpenError } from '../errors/errors.ts'
import { type FleetPipelineDefinition, tasksOf } from '../pipeline/fleet-pipeline.ts'
import type { ScheduleDefinition } from '../schedule/schedule-definition.ts'
import { checkFollowUps } from './follow-ups/catalogue-check.ts'
import { suggestion } from './nearest.ts'
import { defaultQueue, type QueueDefinition } from './queue.ts'
import type { TaskDefinition } from './task-definition.ts'

export interface Catalogue<D extends TaskDefinition = TaskDefinition> {
  readonly definitions: readonly D[]
  /** The names of the queues that the definitions use, in the order of first use. */
  readonly queues: readonly string[]
  /** The schedules, which the API and the workers store when they start. */
  readonly schedules: readonly ScheduleDefinition[]
  /** Returns the pipeline with this name. @throws BullpenError `unknown_pipeline`, with the nearest name as a suggestion. */
  pipeline(name: string): FleetPipelineDefinition
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
  'events',
  'slo',
  'fairness',
  'perConcurrencyKey',
  'permits',
  'breakers',
] as const satisfies readonly (keyof QueueDefinition)[]

/** What {@link defineCatalogue} accepts: task definitions, schedules, and pipelines that run across the fleet. */
type Entry = TaskDefinition | ScheduleDefinition | FleetPipelineDefinition

/**
 * Collects task definitions, and the schedules and pipelines that enqueue them, into a catalogue. Producers and workers import
 * the same catalogue.
 *
 * @example
 * export const catalogue = defineCatalogue(welcome, receipt, nightlyReport)
 * @throws BullpenError `invalid_definition` if no task definition is given, if two definitions, two schedules or two pipelines have the
 * same name, if two definitions define the same queue differently, if a task of a schedule or pipeline or a definition's follow-up is not
 * in the catalogue, or if definitions' follow-ups of failures and of any end form a cycle or are nested more than 8 deep.
 */
export function defineCatalogue<const E extends readonly [Entry, ...Entry[]]>(
  ...entries: E
): Catalogue<Extract<E[number], TaskDefinition>> {
  type D = Extract<E[number], TaskDefinition>
  const schedules = entries.filter(
    (entry): entry is Extract<E[number], ScheduleDefinition> => entry?.kind === 'schedule',
  )
  const pipelines = entries.filter(
    (entry): entry is Extract<E[number], FleetPipelineDefinition> => entry?.kind === 'pipeline',
  )
  const definitions = entries.filter((entry): entry is D => entry?.kind !== 'schedule' && entry?.kind !== 'pipeline')
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
  checkFollowUps(byName)
  checkSchedules(schedules, byName)
  const pipelineOf = checkPipelines(pipelines, byName)
  return Object.freeze({
    definitions: Object.freeze([...definitions]),
    schedules: Object.freeze([...schedules]),
    queues: Object.freeze([...new Set(definitions.map((definition) => definition.queue))]),
    queue: (name: string) => firstOf.get(name)?.queueSettings ?? defaultQueue(name),
    pipeline: pipelineOf,
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

function checkPipelines(
  pipelines: readonly FleetPipelineDefinition[],
  tasks: ReadonlyMap<string, TaskDefinition>,
): (name: string) => FleetPipelineDefinition {
  const byName = new Map<string, FleetPipelineDefinition>()
  for (const pipeline of pipelines) {
    const { name, source, stages } = pipeline
    // Plain JavaScript may pass a pipeline of functions.
    if (source === undefined) {
      throw new BullpenError(
        'invalid_definition',
        `pipeline '${name}' consists of functions, which only runPipeline can run; a pipeline in a catalogue begins with the result of defineSource`,
      )
    }
    if (byName.has(name)) {
      throw new BullpenError('invalid_definition', `two pipelines are named '${name}'; names must be unique`)
    }
    if (stages.length === 0) {
      throw new BullpenError('invalid_definition', `pipeline '${name}' has no stages; add at least one with map`)
    }
    const missing = tasksOf(pipeline).find((task) => tasks.get(task.name) !== task)
    if (missing !== undefined) {
      throw new BullpenError(
        'invalid_definition',
        `pipeline '${name}' runs '${missing.name}', which is not in the catalogue; pass that definition to defineCatalogue, too`,
      )
    }
    const following = tasksOf(pipeline).find(({ followUps }) => followUps !== undefined)
    if (following !== undefined) {
      throw new BullpenError(
        'invalid_definition',
        `pipeline '${name}' runs '${following.name}', whose definition has follow-ups; add a stage to the pipeline instead`,
      )
    }
    byName.set(name, pipeline)
  }
  return (name) => {
    const pipeline = byName.get(name)
    if (pipeline !== undefined) return pipeline
    const task = tasks.has(name) ? `; '${name}' is a task` : ''
    throw new BullpenError(
      'unknown_pipeline',
      `unknown pipeline ${JSON.stringify(name)}${task}${suggestion(name, [...byName.keys()])}`,
    )
  }
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
