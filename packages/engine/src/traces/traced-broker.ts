// Gives each call that stores tasks a span, by wrapping the broker. A process without tracing uses the broker as it is, so that enqueueing
// costs it nothing, not even a check.
import type { TraceContext } from '@bullpen/contract'
import type { Broker } from '../ports/broker/broker.ts'
import type { FollowUpTask, NewTask } from '../ports/broker/new-task.ts'
import type { EnqueueEnd, EnqueueSpan, ProducerTracing, TracedEnqueue } from '../ports/tracing.ts'

type Enqueueing = Pick<Broker, 'enqueue' | 'enqueueBulk' | 'enqueueAll' | 'groups' | 'runs'>

/**
 * Returns a broker whose calls that store tasks have spans, or the same broker if there is no tracing. The tasks are stored with the trace
 * context of their call's span. A call that is repeated has one span for each try, and a bulk call one for all of its tasks.
 */
export function tracedBroker<B extends Enqueueing>(broker: B, tracing: ProducerTracing | undefined): B {
  if (tracing?.startEnqueue === undefined) return broker
  const startEnqueue = tracing.startEnqueue.bind(tracing)
  const { groups, runs } = broker

  /** Calls the broker within a span. */
  async function traced<T>(
    enqueue: TracedEnqueue,
    call: (span: EnqueueSpan) => Promise<T>,
    endOf: (result: T) => EnqueueEnd,
  ): Promise<T> {
    const span = startEnqueue(enqueue)
    try {
      const result = await span.run(() => call(span))
      span.end(endOf(result))
      return result
    } catch (error) {
      span.end({ error })
      throw error
    }
  }

  return {
    ...broker,

    enqueue: (task) =>
      traced(
        { ...about([task]), id: task.id, count: undefined },
        ({ traceContext }) => broker.enqueue(within(traceContext, task)),
        ({ id, action }) => ({ id, action }),
      ),

    async enqueueBulk(tasks) {
      if (tasks.length === 0) return []
      return traced(
        about(tasks),
        ({ traceContext }) => broker.enqueueBulk(tasks.map((task) => within(traceContext, task))),
        endOfBulk,
      )
    },

    async enqueueAll(tasks) {
      if (tasks.length === 0) return []
      return traced(
        about(tasks),
        ({ traceContext }) => broker.enqueueAll(tasks.map((task) => within(traceContext, task))),
        () => ({}),
      )
    },

    groups: {
      ...groups,
      async add(group, members) {
        const { tasks } = members
        // The call may only seal the group.
        if (tasks.length === 0) return groups.add(group, members)
        return traced(
          { ...about(tasks), group },
          ({ traceContext }) =>
            groups.add(group, { ...members, tasks: tasks.map((task) => within(traceContext, task)) }),
          () => ({}),
        )
      },
    },

    runs: {
      ...runs,
      start(run) {
        const { id, source } = run.settings
        return traced(
          { ...about(run.tasks), ...source, count: undefined, run: id },
          ({ traceContext }) => runs.start({ ...run, tasks: run.tasks.map((task) => within(traceContext, task)) }),
          ({ isNew }) => ({ action: isNew ? 'created' : 'existing' }),
        )
      },
    },
  }
}

/** Describes the call that stores these tasks, of which there is at least one. */
function about(tasks: readonly NewTask[]): TracedEnqueue {
  const [first] = tasks
  return {
    queue: tasks.every(({ queue }) => queue === first?.queue) ? first?.queue : undefined,
    task: tasks.every(({ task }) => task === first?.task) ? first?.task : undefined,
    id: undefined,
    count: tasks.length,
    correlationId: first?.correlationId,
    group: undefined,
    run: undefined,
    retryOf: first?.retryOf,
    traceContext: first?.traceContext,
  }
}

/** Returns the task as a part of a trace, with its follow-ups. */
function within<T extends NewTask | FollowUpTask>(traceContext: TraceContext | undefined, task: T): T {
  const followUps = task.followUps?.map((each) => ({ ...each, task: within(traceContext, each.task) }))
  return { ...task, traceContext, followUps }
}

/** A bulk call has failed if one of its tasks was not stored. */
function endOfBulk(results: readonly PromiseSettledResult<unknown>[]): EnqueueEnd {
  const failed = results.filter((each) => each.status === 'rejected')
  const [first] = failed
  return first === undefined ? {} : { error: first.reason, failed: failed.length }
}
