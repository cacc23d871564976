// Refuses the calls of a handler that need a fleet: they enqueue tasks, which no worker would run.
import { type TaskContext, TaskError } from '@bullpen/contract'

const FLEET_ONLY = [
  'enqueue',
  'onSuccess',
  'onFailure',
  'onEnd',
  'compensate',
] as const satisfies readonly (keyof TaskContext)[]

const REFUSALS: PropertyDescriptorMap = Object.fromEntries(
  FLEET_ONLY.map((name) => [
    name,
    {
      value(): never {
        // The call is a bug, so the task is not retried.
        throw new TaskError(
          'needs_a_fleet',
          `context.${name} is not available in a pipeline that runs within one process; start the pipeline with a client, so that it runs across the fleet`,
          { retryable: false },
        )
      },
    },
  ]),
)

/** Makes these methods of a handler's context throw a TaskError `needs_a_fleet`. */
export function refuseFleetOnly(context: TaskContext): void {
  Object.defineProperties(context, REFUSALS)
}
