// Does the leader's work for the schedules of one queue: enqueues the tasks of the ticks that are due.
import type { TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newToken, type ScheduleStore, type StoredSchedule } from '../ports/broker/schedules.ts'
import type { Sha256 } from '../task/digest.ts'
import { nextStep, wakeTime } from './next-step.ts'
import { scheduledTask } from './schedule-record.ts'

export interface DueSchedulesOptions {
  readonly store: ScheduleStore
  readonly sha256: Sha256
  readonly randomBytes: (size: number) => Uint8Array
  /** Cancels a run. */
  readonly cancel: (run: { readonly queue: string; readonly id: TaskId; readonly stoppable: boolean }) => Promise<void>
  /** Called for each task that was enqueued. The callback must not throw or block. */
  readonly onEnqueued: (enqueued: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

/** How long to wait before a step that was refused as too early is tried again, in ms. */
const EARLY_MS = 100

/**
 * Takes one step for each schedule of the queue that is due, and returns how long to wait before calling this function again, in ms.
 * Returns undefined if nothing is due within `withinMs`. Only the store's clock matters, so a wrong clock in this process cannot
 * make a tick early, late or double. If one schedule cannot be read or its step fails, the steps of the others are still taken. Takes
 * two round trips, and one for each step.
 *
 * @throws the first such error, after all steps.
 */
export async function runDueSchedules(
  options: DueSchedulesOptions,
  queue: string,
  withinMs: number,
): Promise<number | undefined> {
  const { now, schedules, unreadable } = await options.store.due(queue, withinMs)
  const steps = await Promise.allSettled(schedules.map((found) => takeStep(options, found, now)))
  const failed = steps.find((step) => step.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  if (unreadable !== undefined) throw unreadable
  const waits = steps.flatMap((step) => (step.status === 'fulfilled' && step.value !== undefined ? [step.value] : []))
  return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits) - now)
}

/** Takes the next step of a schedule, and returns when the following one is due, in ms since 1970. */
async function takeStep(
  { store, sha256, randomBytes, cancel, onEnqueued }: DueSchedulesOptions,
  { record, lastStatus, token }: StoredSchedule,
  now: number,
): Promise<number | undefined> {
  const { name, queue, stoppable } = record
  const step = nextStep(record, lastStatus, now)
  const cancelOther = async (): Promise<void> => {
    if (step.cancel !== undefined) await cancel({ queue, id: step.cancel, stoppable })
  }
  if (step.kind === 'wait') {
    await cancelOther()
    return step.until
  }
  const tick = step.run
  const task = tick === undefined ? undefined : scheduledTask(step.record, tickId(record, tick, sha256), tick, now)
  const written =
    tick === undefined || task === undefined ? step.record : { ...step.record, lastRun: { id: task.id, tick, at: now } }
  const statusAfter = task === undefined ? lastStatus : 'waiting'
  const result = await store.write({
    queue,
    name,
    expected: token,
    token: newToken(randomBytes),
    record: written,
    wakeAt: wakeTime(written, statusAfter, now),
    add: task,
    notBefore: step.dueAt,
  })
  switch (result) {
    case 'written':
      if (task !== undefined) onEnqueued({ queue, id: task.id, task: task.task })
      await cancelOther()
      return now
    // Another process has written the schedule, so read it again.
    case 'conflict':
      return now
    case 'early':
      return now + EARLY_MS
    // The tick remains due. It is missed if the queue drains for more than ten seconds.
    case 'draining':
      return undefined
  }
}

/**
 * Returns the id of a tick's task. The id depends only on the schedule and the tick. If Redis has lost its newest data and the tick
 * is handled again, the leader therefore finds the task that already exists.
 */
function tickId(
  { name, queue }: { readonly name: string; readonly queue: string },
  tick: number,
  sha256: Sha256,
): TaskId {
  return createTaskId(queue, tick, sha256(`schedule ${name} ${tick}`).subarray(0, ID_RANDOM_BYTES))
}
