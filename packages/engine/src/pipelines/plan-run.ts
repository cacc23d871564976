// Plans the run of a pipeline: checks its input and its settings, and creates the tasks from which those of the run are made.
import {
  type FleetPipelineDefinition,
  milliseconds,
  type RunId,
  type RunSettingsOptions,
  type TaskId,
  type TraceContext,
} from '@bullpen/contract'
import {
  createIncarnation,
  createTaskId,
  ID_RANDOM_BYTES,
  millisecondsOrZero,
  tasksOf,
} from '@bullpen/contract/internal'
import type { NewRun } from '../ports/broker/runs.ts'
import { checkInput } from '../task/check-call.ts'
import { invalidRequest } from '../task/invalid-request.ts'
import { newTask } from '../task/new-task.ts'

const TOTAL = { min: milliseconds('1s'), max: milliseconds('30d'), default: milliseconds('7d') }
const KEEP = { max: milliseconds('30d'), default: milliseconds('1d') }
/**
 * How long every run is kept after it has ended, in ms. A client waits with one request after another, and repeats a request that was lost,
 * so the end may be announced while no request of it waits.
 */
const MIN_RUN_KEPT_MS = 10_000

export interface PlanRunOptions extends RunSettingsOptions {
  readonly id: RunId
  readonly by: string
  readonly input: unknown
  /** At least `ID_RANDOM_BYTES` random bytes, which distinguish the run from earlier ones with the same id. */
  readonly random: Uint8Array
  /** Milliseconds since 1970. */
  readonly now: number
  readonly correlationId: string | undefined
  readonly traceContext?: TraceContext | undefined
}

/** @throws BullpenError `invalid_input`, `invalid_request` or `invalid_duration`. */
export function planRun(pipeline: FleetPipelineDefinition, options: PlanRunOptions): NewRun {
  const { id, by, input, random, now, correlationId, traceContext, totalTimeout, keep } = options
  const { name, onError, maxErrors, ordered, takes: take, resultBatch, source, stages, reduction: reduce } = pipeline
  for (const task of [source, ...(reduce === undefined ? [] : [reduce.task])]) checkInput(task, input)
  const totalMs = totalTimeout === undefined ? TOTAL.default : milliseconds(totalTimeout, 'totalTimeout')
  const keepMs = keep === undefined ? KEEP.default : millisecondsOrZero(keep, 'keep')
  if (totalMs < TOTAL.min || totalMs > TOTAL.max)
    throw invalidRequest('/totalTimeout', "expected a duration from '1s' to '30d'")
  if (keepMs > KEEP.max) throw invalidRequest('/keep', "expected a duration from '0s' to '30d'")
  const inputs = new Set<unknown>([source, reduce?.task])
  return {
    settings: {
      ...{ id, incarnation: createIncarnation(random) },
      ...{ pipeline: name, by, onError, maxErrors, ordered, take, resultBatch, totalMs },
      keepMs: Math.max(keepMs, MIN_RUN_KEPT_MS),
      source: { task: source.name, queue: source.queue },
      stages: stages.map(({ task, concurrency, buffer, batch }) => ({
        task: task.name,
        queue: task.queue,
        concurrency,
        buffer,
        batch,
      })),
      reduce: reduce && { task: reduce.task.name, queue: reduce.task.queue, maxBytes: reduce.maxBytes },
    },
    tasks: tasksOf(pipeline).map((task) =>
      newTask(
        task,
        inputs.has(task) ? input : undefined,
        {},
        { id: NO_ID, enqueuedAt: now, correlationId, traceContext },
      ),
    ),
  }
}

/** The ids of the run's tasks are derived from the run's id. */
const NO_ID: TaskId = createTaskId('run', 0, new Uint8Array(ID_RANDOM_BYTES))
