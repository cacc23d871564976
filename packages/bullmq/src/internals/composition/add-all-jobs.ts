// Adds several tasks to one queue as BullMQ jobs, all or none, in one script.
import { type Enqueued, QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { mapTasks, refusedTogether, taskBytes } from '@bullpen/engine/internal'
import type { RedisClient, RedisQueueBackend } from 'bullmq'
import { addAll } from '../../scripts/jobs/add-all.ts'
import { type Commander, runScript } from '../../scripts/script.ts'
import { type AddReply, type Admitted, enqueuedBy, isStored, type StoredStrings, sendAdd } from './add-job.ts'
import { ADD } from './add-steps.ts'
import { COMPOSED } from './composed-scripts.ts'

/** The arguments that an `AddJob` takes. */
export interface NewJob {
  readonly task: NewTask
  readonly stored: StoredStrings
  readonly admitted: Admitted
}

export type AddAllJobs = (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>

/**
 * Returns a function that adds several tasks to one queue, either all of them or none. `redis` is the backend's connection. In
 * every other respect, the function works like the one that `jobAdder` returns. A call takes one round trip.
 */
export function allJobsAdder(redis: Commander, backend: RedisQueueBackend): AddAllJobs {
  return async (jobs) => {
    const adds = jobs.flatMap((job) => collectAdds(backend, job))
    const [first] = adds
    if (first === undefined) return []
    const keys = JSON.stringify(Object.fromEntries(adds.map((add) => [add.script, add.keys])))
    const [any = ''] = first.keys
    const more = adds.flatMap((add) => [add.script, ...add.args])
    const replies = await runScript(redis, addAll, { any }, { base: first.base, keys }, more)
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

/** One run of a BullMQ script, which becomes a part of one of Bullpen's scripts. */
export interface Add {
  readonly script: string
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
  readonly base: string
}

/** Returns what BullMQ's backend would send to add this task. The task is encoded as if it were added alone. */
export function collectAdds(backend: RedisQueueBackend, { task, stored, admitted }: NewJob): readonly Add[] {
  const adds: Add[] = []
  const collector = {
    runCommand(name: string, args: readonly (string | Buffer)[]) {
      const script = name.replace('bullpen:', '')
      const keys = COMPOSED.get(script)?.numberOfKeys ?? 0
      const own = args.slice(keys, keys + ADD.own)
      const [base, ...extra] = args.slice(keys + ADD.own)
      const all = [...own, ...ADD.extra.map((_, i) => extra[i] ?? '')]
      adds.push({ script, keys: args.slice(0, keys) as readonly string[], args: all, base: base as string })
    },
  }
  // To add a job, BullMQ's backend calls only `runCommand`. A test pins this.
  void sendAdd(collector as unknown as RedisClient, backend, task, stored, admitted)
  return adds
}
