// Runs the handlers of a pipeline's source and of its reduction in an attempt.
import { type ReducerDefinition, type ReducerFunction, type TaskDefinition, TaskError } from '@bullpen/contract'
import type { PipelineHandler } from '@bullpen/contract/internal'
import type { Attempt } from '../attempt/attempt.ts'
import type { RunAccess } from '../ports/broker/runs.ts'
import { repeatCall } from './repeat-call.ts'
import { runOfToken } from './run-task.ts'
import { driveSource, type Source } from './source-driver.ts'

/** How many results one call reads. */
const RESULTS_AT_ONCE = 500

export function pipelineHandle(
  handler: PipelineHandler<TaskDefinition, object, unknown>,
): (attempt: Attempt) => Promise<unknown> {
  const { task, pipeline } = handler
  // The definitions of sources and reductions have a schema of their items.
  const { item } = task as ReducerDefinition
  return async (attempt) => {
    const { run } = attempt
    if (run === undefined) {
      const message = `${task.name} belongs to a pipeline and cannot be enqueued by itself; start a pipeline that contains it`
      throw new TaskError('not_in_a_pipeline', message, { retryable: false })
    }
    if (pipeline.kind === 'source') return driveSource(attempt, run, item, pipeline.run as Source)
    const items = await resultsOf(attempt, run.access, run.place.id)
    const reduce = pipeline.run as ReducerFunction<ReducerDefinition>
    return reduce(
      items.map((each) => item.parse(each)),
      attempt,
    )
  }
}

async function resultsOf(attempt: Attempt, access: RunAccess, token: string): Promise<readonly unknown[]> {
  const run = runOfToken(token)
  const items: unknown[] = []
  for (;;) {
    const page = await repeatCall(attempt, () => access.results(run, items.length, RESULTS_AT_ONCE))
    items.push(...page)
    if (page.length < RESULTS_AT_ONCE) return items
  }
}
