// Adds several tasks to one queue as BullMQ jobs, all or none, in one script.
import { type Enqueued, QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { mapTasks, refusedTogether, taskBytes } from '@bullpen/engine/internal'
import { addAll, listedAdd } from '../../scripts/jobs/add-all.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { addKeys, addOf, type StoredStrings } from './add-arguments.ts'
import { type AddReply, type Admitted, conditionsOf, enqueuedBy, isStored } from './add-job.ts'

/** The arguments that an `AddJob` takes. */
export interface NewJob {
  readonly task: NewTask
  readonly stored: StoredStrings
  readonly admitted: Admitted
}

export type AddAllJobs = (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>

/**
 * Returns a function that adds several tasks to one queue, either all of them or none. In every other respect, the function works
 * like the one that `jobAdder` returns. A call takes one round trip.
 */
export function allJobsAdder(redis: Commander, base: string): AddAllJobs {
  const keys = JSON.stringify(addKeys(base))
  return async (jobs) => {
    if (jobs.length === 0) return []
    const more = jobs.flatMap(({ task, stored, admitted }) => listedAdd(addOf(task, stored, conditionsOf(admitted))))
    const replies = await runScript(redis, addAll, { any: `${base}wait` }, { base, keys }, more)
    for (const [i, { task, admitted }] of jobs.entries()) {
      if (!isStored(task, replies[i] ?? '')) admitted.onNotStored?.()
    }
    // If a task was refused, decoding its reply throws, whatever the replies for the tasks before it.
    try {
      return mapTasks(jobs, ({ task, admitted }, i) => enqueuedBy(task, replies[i] ?? '', admitted))
    } catch (error) {
      throw error instanceof QueueFullError ? refusedTogether(error, neededBy(jobs, replies)) : error
    }
  }
}

/** Returns how much room a refused request needs. The other replies belong to tasks that earlier requests have stored. */
function neededBy(jobs: readonly NewJob[], replies: readonly AddReply[]) {
  const added = jobs.filter((_, i) => replies[i] === '' || typeof replies[i] === 'object')
  const sizeOf = ({ data, followUps }: StoredStrings): number => Buffer.byteLength(data) + Buffer.byteLength(followUps)
  const bytes = added.reduce((sum, { stored }) => sum + taskBytes(sizeOf(stored)), 0)
  return { tasks: added.length, bytes }
}
