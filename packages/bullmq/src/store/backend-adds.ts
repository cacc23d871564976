// BullMQ's backend over Bullpen's own scripts: the methods with which a team's own Queue or FlowProducer adds jobs and job schedulers.
//
// Each method runs one script, which uses Redis's clock, and returns or throws what BullMQ's own method would.
import { QueueKeys, type RedisQueueBackend } from 'bullmq'
import type { ScriptRunner } from '../scripts/script.ts'
import { ownJobArguments, stored, storedOptions } from './own-job.ts'
import {
  addJobScript,
  addJobsScript,
  addSchedulerScript,
  removeSchedulerScript,
  updateSchedulerScript,
} from './scripts.ts'

type AddMethods = Pick<RedisQueueBackend, 'addJob' | 'addJobs' | 'addFlow' | 'addJobToTransaction'>

type SchedulerMethods = Pick<
  RedisQueueBackend,
  'addJobScheduler' | 'updateJobSchedulerNextMillis' | 'removeJobScheduler'
>

/** The scripts that run in pipelines and transactions, whose client must know them before these begin. */
export const PIPELINED = [addJobScript, addJobsScript] as const

/** How many jobs one run of the script adds, so that it does not hold up other clients. A flow is added in one run. */
const JOBS_AT_ONCE = 50

/** Returns the methods that add jobs. */
export function addMethods(backend: RedisQueueBackend, run: ScriptRunner): AddMethods {
  return {
    async addJob(job, jobId, parentKeyOpts) {
      return this.addJobToTransaction(await backend.connection.client, job, jobId, parentKeyOpts)
    },

    async addJobToTransaction(client, job, jobId, parentKeyOpts = {}, keys = backend.keys) {
      const { '': base = '', wait } = keys
      const args = [wait, ...ownJobArguments(base, { job, jobId, parentKeyOpts })]
      // A transaction replies with itself.
      const reply = (await client.runCommand(addJobScript.name, args)) as string | number
      if (typeof reply !== 'number') return reply
      const { parentKey = '' } = parentKeyOpts
      throw backend.finishedErrors({ code: reply, parentKey, command: 'addJob' })
    },

    async addJobs(entries) {
      const base = backend.toKey('')
      const jobs = entries.map((entry) => ownJobArguments(base, entry))
      const pipeline = (await backend.connection.client).pipeline()
      for (let at = 0; at < jobs.length; at += JOBS_AT_ONCE) {
        const some = jobs.slice(at, at + JOBS_AT_ONCE).flat()
        pipeline.runCommand(addJobsScript.name, [backend.toKey('wait'), '', ...some])
      }
      const results = (await pipeline.exec()) ?? []
      // As in BullMQ, the code of a refused job takes the place of its id.
      return results.flatMap(([error, replies]) => {
        if (error !== null) throw error
        return replies as string[]
      })
    },

    async addFlow(entries) {
      const [first] = entries
      if (first === undefined) return []
      const keyOf = ({ prefix, queueName }: Omit<typeof first, 'jobData'>, type: string) =>
        new QueueKeys(prefix).toKey(queueName, type)
      const jobs = entries.map(({ jobData: job, ...entry }) => ownJobArguments(keyOf(entry, ''), { job, ...entry }))
      const replies = await run(addJobsScript, { any: keyOf(first, 'wait') }, { isFlow: '1' }, jobs.flat())
      return replies.map((reply) => [null, reply])
    },
  }
}

/** Returns the methods that add, change and remove job schedulers. */
export function schedulerMethods(backend: RedisQueueBackend, run: ScriptRunner): SchedulerMethods {
  const [keys, base] = [{ schedulers: backend.toKey('repeat') }, backend.toKey('')]

  return {
    async addJobScheduler(scheduler, time: number | undefined, data, templateOptions, given, ofJob) {
      const [template, options] = [storedOptions(templateOptions), storedOptions(ofJob)]
      const args = { base, scheduler, time: time ?? '', settings: stored(given), data, template, options }
      const reply = await run(addSchedulerScript, keys, args)
      if (typeof reply === 'number') throw backend.finishedErrors({ code: reply, command: 'addJobScheduler' })
      return reply
    },

    async updateJobSchedulerNextMillis(scheduler, time: number | undefined, _, ofJob, producer = '') {
      const args = { base, scheduler, time: time ?? '', options: storedOptions(ofJob), producer }
      return run(updateSchedulerScript, keys, args)
    },

    async removeJobScheduler(scheduler) {
      return run(removeSchedulerScript, keys, { base, scheduler })
    },
  }
}
