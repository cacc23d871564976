// Runs the schedules of any queue for the leader.
import { randomBytes, randomUUID } from 'node:crypto'
import { type DueSchedulesOptions, runDueSchedules, type ScheduleStore } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { cancelById } from '../cancel/by-id.ts'
import { queueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

export interface ScheduleRunnerOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly store: ScheduleStore
  readonly now: () => number
  /** This process's name, for the records of the runs that it cancels. */
  readonly process: string
  readonly onEnqueued: DueSchedulesOptions['onEnqueued']
  /** Called for each run that was cancelled before it started. */
  readonly onCancelled: DueSchedulesOptions['onEnqueued']
}

/** Returns the function that the leader calls for a queue whose schedules may be due (leader/housekeeping.ts). */
export function scheduleRunner(options: ScheduleRunnerOptions) {
  const { redis, namespace, store, now, process, onEnqueued, onCancelled } = options
  const cancel: DueSchedulesOptions['cancel'] = async ({ queue, id, stoppable }) => {
    const request = { request: randomUUID(), id, stoppable, now: now(), by: 'schedule', process }
    const { answer, task } = await cancelById(redis, queueKeys(namespace, queue), request)
    if (answer === 'cancelled') onCancelled({ queue, id, task })
  }
  return (queue: string, withinMs: number): Promise<number | undefined> =>
    runDueSchedules({ store, sha256, randomBytes, cancel, onEnqueued }, queue, withinMs)
}
