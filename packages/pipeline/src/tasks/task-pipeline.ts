// Turns a pipeline of tasks into stages that are functions, each of which runs a task within this process.
import {
  BullpenError,
  defineCatalogue,
  type FleetPipelineDefinition,
  type Log,
  type PipelineDefinition,
  type StageContext,
} from '@bullpen/contract'
import { type SourceStage, type Stage, tasksOf, toHandlers } from '@bullpen/contract/internal'
import {
  batchText,
  checkInput,
  createRegistry,
  decodeValue,
  encodeValue,
  inlined,
  type Registry,
} from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { refuseFleetOnly } from './fleet-only.ts'
import { createRetryWaits } from './retry-waits.ts'
import { createSourceFeed } from './source-feed.ts'
import { createTaskCaller, type TaskCaller, type TaskHost } from './task-caller.ts'
import type { AnyTaskRunOptions, StageHandlers } from './task-run-options.ts'

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * Returns a pipeline of functions for one run with this input. Between two stages, an item is the JSON text that would be stored, so that
 * handlers get exactly what they would get across the fleet.
 *
 * @throws BullpenError `invalid_input`, `invalid_handler` or `invalid_definition`.
 */
export function functionsOf(
  pipeline: FleetPipelineDefinition,
  input: unknown,
  { handlers, resources = {}, log = SILENT }: AnyTaskRunOptions,
): PipelineDefinition {
  const { name, onError, maxErrors, ordered, source, stages, takes, resultBatch, reduction } = pipeline
  const registry = registryOf(pipeline, handlers)
  const given = encodeValue(input, undefined)
  for (const task of [source, ...(reduction === undefined ? [] : [reduction.task])]) {
    checkInput(task, decodeValue(given, undefined))
  }
  const clock = systemClock
  const feed = createSourceFeed(clock.after)
  const { access } = feed
  const host: TaskHost = {
    ...{ pipeline: name, registry, resources, log, access, clock },
    waits: createRetryWaits(clock),
  }

  const from = (_: unknown, { signal }: StageContext): AsyncIterable<string> =>
    feed.items(() => createTaskCaller(source, host, signal)(given))
  const mapped = stages.flatMap(({ task, concurrency, buffer, batch }, i): readonly Stage[] => {
    const isLast = i === stages.length - 1 && reduction === undefined
    const passOn = isLast ? (value: string) => decodeValue(value, undefined) : (value: string) => value || undefined
    let call: TaskCaller | undefined
    const run = async (item: Passed, { signal }: StageContext): Promise<unknown> => {
      // All calls of a stage get the same signal.
      call ??= createTaskCaller(task, host, signal)
      return passOn(await call(textOf(item)))
    }
    return [...batched(batch), { kind: 'map', name: task.name, run, concurrency, buffer }]
  })
  const taken: Stage[] = takes === undefined ? [] : [{ kind: 'take', name: 'take', count: takes }]
  const reduced: Stage[] = []
  if (reduction !== undefined) {
    const run = async (results: readonly Passed[], { signal }: StageContext): Promise<unknown> => {
      feed.setResults(results.map(textOf))
      return decodeValue(await createTaskCaller(reduction.task, host, signal)(given), undefined)
    }
    reduced.push({ kind: 'reduce', name: reduction.task.name, run })
  }
  const first: SourceStage = { kind: 'source', name: source.name, from }
  const after = [...batched(resultBatch), ...taken, ...reduced]
  return { kind: 'pipeline', name, onError, maxErrors, ordered, stages: [first, ...mapped, ...after] }
}

/** What one stage passes on to the next: the text of a value, or those of a batch. */
type Passed = string | readonly string[]

function textOf(passed: Passed): string {
  return typeof passed === 'string' ? passed : batchText(passed)
}

function batched(size: number | undefined): readonly Stage[] {
  return size === undefined ? [] : [{ kind: 'batch', name: 'batch', size }]
}

type Runnable = NonNullable<ReturnType<Registry['get']>>

/** Prepares the tasks, without their isolation and without the methods that need a fleet. */
function registryOf(pipeline: FleetPipelineDefinition, handlers: StageHandlers): Registry {
  const [first = pipeline.source, ...others] = new Set(tasksOf(pipeline))
  // Checks the pipeline as for a fleet.
  defineCatalogue(first, ...others, pipeline)
  if (typeof handlers !== 'object' || handlers === null) {
    throw new BullpenError(
      'invalid_handler',
      `pipeline '${pipeline.name}' consists of tasks; pass their handlers, as in runPipeline(pipeline, input, { handlers })`,
    )
  }
  const catalogue = defineCatalogue(inlined(first), ...others.map((task) => inlined(task)))
  const own = [first, ...others].flatMap(({ name }) => {
    const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined
    return handler === undefined ? [] : [[name, { ...handler, task: inlined(handler.task) }] as const]
  })
  const prepared = createRegistry(catalogue, toHandlers(catalogue, Object.fromEntries(own)))
  const limited = new Map<string, Runnable>()
  for (const { name } of catalogue.definitions) {
    const runnable = prepared.get(name)
    if (runnable === undefined) continue
    const handle: Runnable['handle'] = (attempt) => {
      refuseFleetOnly(attempt)
      return runnable.handle(attempt)
    }
    limited.set(name, { ...runnable, handle })
  }
  return { get: (name) => limited.get(name) }
}
