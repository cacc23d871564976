// Reports what happens to the tasks of the memory broker as events.
import type { EventBody } from '@bullpen/contract/internal'
import { MAX_LOG_EVENTS } from '@bullpen/contract/internal'
import { type AttemptEvents, type AttemptResult, aboutStored, endOf, verdictEvent } from '@bullpen/engine/internal'
import type { Owner, StoredTask } from '../store/stored-task.ts'
import { statusOf } from '../store/stored-task.ts'
import type { MemoryEventStream } from './memory-event-stream.ts'

export interface TaskReports {
  enqueued(task: StoredTask): void
  /** Returns what an attempt reports to, or undefined if the task has no events. */
  attempt(task: StoredTask, owner: Owner): AttemptEvents | undefined
  /** Reports a verdict, unless the verdict ends the task. `dueAt` is when a delayed task is due, in ms since 1970. */
  continued(task: StoredTask, result: AttemptResult, now: number): void
  /** Reports that the task's worker was lost. Its newest attempt record is that of the lost attempt. */
  lost(task: StoredTask): void
  /** Reports that the task has ended, as its newest attempt record says. */
  ended(task: StoredTask): void
  retryRequested(task: StoredTask, by: string): void
}

export function taskReports(stream: MemoryEventStream): TaskReports {
  const logLines = new WeakMap<StoredTask, number>()
  const add = (task: StoredTask, body: (about: ReturnType<typeof aboutStored>) => EventBody | undefined): void => {
    const count = task.envelope.events
    if (count === undefined) return
    const event = body(aboutStored(task.task, task.envelope))
    if (event !== undefined) stream.add(task.id, event, count)
  }
  const attemptOf = ({ attemptsMade, fencingToken }: StoredTask) => ({ attempt: attemptsMade + 1, fencingToken })

  return {
    enqueued: (task) =>
      add(task, (about) => ({
        type: 'enqueued',
        ...about,
        ...(task.delayMs > 0 && { dueAt: task.enqueuedAt + task.delayMs }),
      })),

    attempt(task, owner) {
      if (task.envelope.events === undefined) return undefined
      const about = { ...aboutStored(task.task, task.envelope), ...attemptOf(task) }
      return {
        about,
        report(body) {
          if (task.owner !== owner) return
          if (body.type === 'log') {
            const lines = (logLines.get(task) ?? 0) + 1
            logLines.set(task, lines)
            if (lines > MAX_LOG_EVENTS) return
          }
          add(task, () => body)
        },
      }
    },

    continued: (task, result, now) =>
      add(task, (about) => {
        const event = verdictEvent({ ...about, ...attemptOf(task) }, result, now)
        if (event?.type === 'ended') return undefined
        // The retry may be later because of its budget.
        return event?.type === 'retrying' && task.dueAt !== undefined ? { ...event, dueAt: task.dueAt } : event
      }),

    lost: (task) => {
      const record = task.attempts.at(-1)
      if (record === undefined) return
      const { attempt, fencingToken } = record
      add(task, (about) => ({ type: 'requeued', ...about, attempt, fencingToken, ...endOf(record) }))
    },

    ended: (task) => {
      const record = task.attempts.at(-1)
      const status = statusOf(task)
      if (
        record === undefined ||
        (status !== 'completed' && status !== 'dead' && status !== 'cancelled' && status !== 'expired')
      )
        return
      const { attempt, fencingToken, by } = record
      add(task, (about) => ({
        type: 'ended',
        ...about,
        ...(fencingToken > 0 && { attempt, fencingToken }),
        ...endOf(record),
        status,
        ...(by !== undefined && { by }),
      }))
    },

    retryRequested: (task, by) => add(task, (about) => ({ type: 'retry_requested', ...about, by })),
  }
}
