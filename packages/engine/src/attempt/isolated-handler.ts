// Creates the handler that the runner calls for an isolated task. That handler runs the real one in a thread or child process.
import type { Handler } from '@bullpen/contract'
import type { Outcome } from '../ports/attempt-result.ts'
import type { Isolator } from '../ports/isolator.ts'
import type { Attempt } from './attempt.ts'

/** An error that carries an isolate's outcome through the middleware, to which it looks like an error that the handler threw. */
export class IsolateEnded extends Error {
  override readonly name = 'IsolateEnded'
  readonly outcome: Outcome

  constructor(outcome: Outcome & { readonly error?: Error }) {
    super(outcome.error?.message ?? outcome.kind, { cause: outcome.error })
    this.outcome = outcome
  }
}

export function isolatedHandle({ task, module }: Handler, isolator: Isolator) {
  const { isolation, memoryLimitBytes } = task
  if (isolation === 'inline') throw new RangeError(`${task.name} is not isolated`)
  return async (attempt: Attempt): Promise<unknown> => {
    const { id, fencingToken, meta, correlationId, traceContext, group, followUpOf } = attempt
    const { heartbeat, log, progress } = attempt
    const isolated = {
      isolation,
      module,
      id,
      fencingToken,
      meta,
      correlationId,
      traceContext,
      group,
      followUpOf,
      memoryLimitBytes,
      task: task.name,
      attempt: attempt.attempt,
      input: attempt.decoded.rawInput,
      enqueuedAt: attempt.enqueuedAt.getTime(),
      startedAt: attempt.startedAt.getTime(),
    }
    const run = isolator.run(isolated, {
      heartbeat,
      log,
      progress: ({ fraction, note }) => progress(fraction, note),
      enqueue: (child, input, options) => attempt.enqueueChild(child, input, options),
      onSuccess(next, nextInput, options) {
        try {
          attempt.addFollowUp(next, nextInput, options)
        } catch (error) {
          // The handler has gone on, so that the error can only end the attempt.
          attempt.attributeUncaught(error)
        }
      },
      register: (kind, name, input, options) => attempt.registerTask(kind, name, input, options),
      findStep: (step) => attempt.findStep(step),
      storeStep: (step, result) => attempt.storeStep(step, result),
    })
    attempt.runIn(run)
    const outcome = await run.outcome
    if (outcome.kind === 'returned') return outcome.output
    throw new IsolateEnded(outcome)
  }
}
