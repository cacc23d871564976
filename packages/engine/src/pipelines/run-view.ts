// Converts the runs of pipelines to the form that the API and clients return.
import type { ReductionState, RunErrors, RunErrorView, RunView, TaskId, TaskRecord } from '@bullpen/contract'
import { optionalTime, runPath, taskView, timeText } from '@bullpen/contract/internal'
import type { Run, RunError, RunReduce } from '../ports/broker/runs.ts'
import type { Sha256 } from '../task/digest.ts'
import { runTaskId } from './run-task.ts'

/** `output` is what the reduction has returned, or undefined. */
export function runView(run: Run, output: unknown, sha256: Sha256): RunView {
  const { settings, state, source, stages, ended, stopped, firstError } = run
  const self = runPath(settings.id)
  return {
    id: settings.id,
    pipeline: settings.pipeline,
    state,
    ...(ended === undefined ? {} : { result: ended.result }),
    ...(output === undefined ? {} : { output }),
    onError: settings.onError,
    source: {
      task: settings.source.task,
      queue: settings.source.queue,
      state: source.state,
      emitted: source.emitted,
      segments: source.segment,
      taskId: idAt(run, 0, source.segment, sha256),
    },
    stages: settings.stages.map(({ task, queue, concurrency, batch }, i) => {
      const { waiting = 0, running = 0, completed = 0, dropped = 0, failed = 0 } = stages[i] ?? {}
      const size = batch === undefined ? {} : { batch }
      return { task, queue, concurrency, ...size, waiting, running, completed, dropped, failed }
    }),
    ...(run.reduce === 'none' || settings.reduce === undefined
      ? {}
      : { reduction: reductionView(run, settings.reduce, run.reduce, sha256) }),
    results: run.results,
    errors: run.errors,
    ...(firstError === undefined ? {} : { firstError: { ...firstError, task: taskOf(run, firstError, sha256) } }),
    by: settings.by,
    startedAt: timeText(run.createdAt),
    timeoutAt: timeText(run.timeoutAt),
    ...optionalTime('endedAt', ended?.at),
    ...(stopped === undefined
      ? {}
      : { stoppedAt: timeText(stopped.at), stopReason: stopped.reason, stoppedBy: stopped.by }),
    links: { self, errors: `${self}/errors`, cancel: `${self}/cancel` },
  }
}

/** Like {@link runView}, with the errors of the tasks because of which the run may have failed. Looks up at most three tasks. */
export async function detailedRunView(
  run: Run,
  output: unknown,
  find: (id: TaskId) => Promise<TaskRecord | undefined>,
  sha256: Sha256,
): Promise<RunView> {
  const view = runView(run, output, sha256)
  const withError = async <T extends object>(of: T, id: string): Promise<T> => {
    const record = await find(id as TaskId)
    const error = record === undefined ? undefined : taskView(record).error
    return error === undefined ? of : { ...of, error }
  }
  const { source, firstError, reduction } = view
  return {
    ...view,
    source: source.state === 'failed' ? await withError(source, source.taskId) : source,
    ...(firstError && { firstError: await withError(firstError, firstError.task) }),
    ...(reduction?.state === 'failed' && { reduction: await withError(reduction, reduction.taskId) }),
  }
}

function reductionView(
  run: Run,
  { task, queue }: RunReduce,
  state: ReductionState,
  sha256: Sha256,
): NonNullable<RunView['reduction']> {
  return { task, queue, state, taskId: idAt(run, run.settings.stages.length + 1, 0, sha256) }
}

function taskOf(run: Run, { stage, position }: RunError, sha256: Sha256): TaskId {
  return idAt(run, stage, position, sha256)
}

/** Returns the id of a task of the run, whose stage is numbered as in ./run-state.ts. */
function idAt({ settings }: Run, stage: number, position: number, sha256: Sha256): TaskId {
  const { source, stages, reduce } = settings
  const { queue = '' } = [source, ...stages, reduce][stage] ?? {}
  return runTaskId({ run: settings, stage, position }, queue, sha256)
}

/** Returns a page of a run's errors, of which the first one has the number `from`. */
export async function runErrors(
  run: Run,
  errors: readonly RunError[],
  { from, limit }: { readonly from: number; readonly limit: number },
  find: (id: TaskId) => Promise<TaskRecord | undefined>,
  sha256: Sha256,
): Promise<RunErrors> {
  const views = errors.map(async (each): Promise<RunErrorView> => {
    const task = taskOf(run, each, sha256)
    const record = await find(task)
    const error = record === undefined ? undefined : taskView(record).error
    return { ...each, task, ...(error === undefined ? {} : { error }) }
  })
  const next = from + errors.length
  return { errors: await Promise.all(views), ...(errors.length === limit ? { next } : {}) }
}
