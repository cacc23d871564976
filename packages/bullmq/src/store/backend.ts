// BullMQ's backend over Bullpen's own scripts: the methods with which a team's own Queue or FlowProducer adds jobs and job schedulers,
// those with which a Queue and its jobs change tasks, and those with which a team's own Worker renews its locks and looks for lost tasks.
//
// Each method runs one script, and returns or throws what BullMQ's own method would. `composeBackend`
// (../internals/composition/backend.ts) puts them in place of BullMQ's. Their scripts use Redis's clock.
import { QueueKeys, type RedisClient, type RedisQueueBackend, type WorkerOptions } from 'bullmq'
import type { Cluster } from 'ioredis'
import { RESERVED_IDS } from '../keys.ts'
import { type Lock, renewLocks } from '../locks/renewal.ts'
import { runScriptOnClient, type ScriptRunner } from '../scripts/script.ts'
import { ownJobArguments, stored, storedOptions } from './own-job.ts'
import { recoverLostTasks } from './recover.ts'
import {
  addJobScript,
  addJobsScript,
  addSchedulerScript,
  changeDataScript,
  changeDelayScript,
  changePriorityScript,
  cleanJobsScript,
  drainQueueScript,
  obliterateQueueScript,
  pauseQueueScript,
  promoteTaskScript,
  removeChildDependencyScript,
  removeJobScript,
  removeOrphansScript,
  removeSchedulerScript,
  removeUnprocessedChildrenScript,
  retryEndedScript,
  returnJobsScript,
  updateSchedulerScript,
  waitForChildrenScript,
} from './scripts.ts'

type AddMethods = Pick<RedisQueueBackend, 'addJob' | 'addJobs' | 'addFlow' | 'addJobToTransaction'>

type SchedulerMethods = Pick<
  RedisQueueBackend,
  'addJobScheduler' | 'updateJobSchedulerNextMillis' | 'removeJobScheduler'
>

type TaskMethods = Pick<
  RedisQueueBackend,
  | 'retryFinishedJob'
  | 'remove'
  | 'removeUnprocessedChildren'
  | 'promote'
  | 'changeDelay'
  | 'changePriority'
  | 'updateData'
  | 'cleanJobsByState'
  | 'retryFinishedJobs'
  | 'promoteJobs'
  | 'drain'
  | 'obliterate'
  | 'removeOrphanedJobs'
  | 'moveToWaitingChildren'
  | 'removeChildDependency'
  | 'pause'
>

type LockMethods = Pick<RedisQueueBackend, 'extendLock' | 'extendLocks' | 'moveStalledJobsToWait'>

/** What a script has replied about a job, and what BullMQ names in its error. */
interface Answer {
  readonly code: number
  readonly jobId: string
  readonly command: string
  readonly state?: string
  readonly parentKey?: string
}

/** The scripts that run in pipelines and transactions, whose client must know them before these begin. */
export const PIPELINED = [addJobScript, addJobsScript] as const

/** How many jobs one run of the script adds, so that it does not hold up other clients. A flow is added in one run. */
const JOBS_AT_ONCE = 50

/** Returns the methods that add jobs. */
export function addMethods(backend: RedisQueueBackend): AddMethods {
  const run = runnerOf(backend)

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
export function schedulerMethods(backend: RedisQueueBackend): SchedulerMethods {
  const run = runnerOf(backend)
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

/** Returns the methods that change tasks. */
export function taskMethods(backend: RedisQueueBackend): TaskMethods {
  const run = runnerOf(backend)
  const of = (id: string) => ({ keys: { job: backend.toKey(id) }, base: backend.toKey(''), id })
  const returnJobs = (state: string, count: number, latest: number | string): Promise<number> =>
    run(returnJobsScript, { set: backend.toKey(state) }, { base: backend.toKey(''), state, count, latest })
  const expectSuccess = (answer: Answer): void => {
    if (answer.code < 0) throw backend.finishedErrors(answer)
  }

  return {
    async retryFinishedJob({ id: jobId = '', opts }, state, { resetAttemptsMade, resetAttemptsStarted } = {}) {
      const { keys, base, id } = of(jobId)
      const reset = { attempts: flag(resetAttemptsMade), starts: flag(resetAttemptsStarted) }
      const code = await run(retryEndedScript, keys, { base, id, set: state, lifo: flag(opts.lifo), ...reset })
      expectSuccess({ code, jobId, command: 'reprocessJob', state })
    },

    async remove(jobId, removeChildren) {
      const { keys, base, id } = of(jobId)
      const code = await run(removeJobScript, keys, { base, id, children: flag(removeChildren) })
      expectSuccess({ code, jobId, command: 'removeJob' })
      return code
    },

    async removeUnprocessedChildren(jobId) {
      const { keys, base } = of(jobId)
      await run(removeUnprocessedChildrenScript, keys, { base })
    },

    async promote(jobId) {
      const { keys, base, id } = of(jobId)
      const code = await run(promoteTaskScript, keys, { base, id })
      expectSuccess({ code, jobId, command: 'promote', state: 'delayed' })
    },

    async changeDelay(jobId, delay) {
      const { keys, base, id } = of(jobId)
      const code = await run(changeDelayScript, keys, { base, id, delay })
      expectSuccess({ code, jobId, command: 'changeDelay', state: 'delayed' })
    },

    async changePriority(jobId, priority = 0, lifo = false) {
      const { keys, base, id } = of(jobId)
      const code = await run(changePriorityScript, keys, { base, id, priority, lifo: flag(lifo) })
      expectSuccess({ code, jobId, command: 'changePriority' })
    },

    async updateData({ id: jobId = '' }, data) {
      const keys = { job: backend.toKey(jobId), totals: backend.toKey('totals') }
      const code = await run(changeDataScript, keys, { data: JSON.stringify(data) })
      expectSuccess({ code, jobId, command: 'updateData' })
    },

    async cleanJobsByState(state, timestamp, limit = 0) {
      const args = { base: backend.toKey(''), state, before: timestamp, limit }
      return run(cleanJobsScript, { place: backend.toKey(state) }, args)
    },

    async retryFinishedJobs(state = 'failed', count = 1_000, timestamp) {
      return returnJobs(state, count, timestamp ?? '+inf')
    },

    async promoteJobs(count = 1_000) {
      return returnJobs('delayed', count, '+inf')
    },

    async drain(delayed) {
      const args = { base: backend.toKey(''), delayed: flag(delayed) }
      await run(drainQueueScript, { wait: backend.toKey('wait') }, args)
    },

    async obliterate({ count, force }) {
      const args = { base: backend.toKey(''), count, force: flag(force) }
      const code = await run(obliterateQueueScript, { meta: backend.toKey('meta') }, args)
      if (code === -1) throw new Error('Cannot obliterate non-paused queue')
      if (code === -2) throw new Error('Cannot obliterate queue with active jobs')
      return code
    },

    async removeOrphanedJobs(count = 1_000, limit = 0) {
      const client = await backend.connection.client
      const base = backend.toKey('')
      let removed = 0
      for (const scan of scansOf(client, `${base}*`, count)) {
        let cursor = '0'
        do {
          const [next, keys] = await scan(cursor)
          const ids = jobsAmong(keys, base)
          if (ids.length > 0) removed += await run(removeOrphansScript, { wait: backend.toKey('wait') }, { base }, ids)
          cursor = next
        } while (cursor !== '0' && (limit <= 0 || removed < limit))
      }
      return removed
    },

    async moveToWaitingChildren(jobId, token, { child } = {}) {
      const { keys, base, id } = of(jobId)
      const childKey = child === undefined ? '' : `${child.queue}:${child.id}`
      const code = await run(waitForChildrenScript, keys, { base, id, token, child: childKey })
      expectSuccess({ code, jobId, command: 'moveToWaitingChildren', state: 'active' })
      return code === 0
    },

    async removeChildDependency(jobId, parentKey) {
      const code = await run(removeChildDependencyScript, of(jobId).keys, { parent: parentKey })
      expectSuccess({ code, jobId, parentKey, command: 'removeChildDependency' })
      return code === 0
    },

    async pause(pauses) {
      const [keys, args] = [{ any: backend.toKey('meta') }, { base: backend.toKey(''), paused: flag(pauses) }]
      while ((await run(pauseQueueScript, keys, args)) === 1);
    },
  }
}

/**
 * Returns the methods that renew locks, and that look for the tasks that have lost theirs. `now` returns the time in ms since 1970, by the
 * clock that all of the queue's processes share.
 */
export function lockMethods(backend: RedisQueueBackend, now: () => number): LockMethods {
  const base = backend.toKey('')
  const run = runnerOf(backend)
  const renew = (locks: readonly Lock[], lockMs: number) => renewLocks(run, { base, lockMs }, locks)

  return {
    async extendLock(id, token, lockMs) {
      const lost = await renew([{ id, token }], lockMs)
      return lost.length === 0 ? 1 : 0
    },

    async extendLocks(ids, tokens, lockMs) {
      const locks = ids.map((id, i) => ({ id, token: tokens[i] ?? '' }))
      const lost = await renew(locks, lockMs)
      return lost.map(({ id }) => id)
    },

    async moveStalledJobsToWait() {
      const { maxStalledCount = 1, stalledInterval = 30_000 } = workerOptionsOf(backend)
      const { ids } = await recoverLostTasks(run, { base, now, maxLosses: maxStalledCount, checkMs: stalledInterval })
      return ids
    },
  }
}

function runnerOf(backend: RedisQueueBackend): ScriptRunner {
  return async (script, keys, args, more) =>
    runScriptOnClient(await backend.connection.client, script, keys, args, more)
}

/** The property `queue` of a backend is protected in BullMQ's types. */
function workerOptionsOf(backend: RedisQueueBackend): Partial<WorkerOptions> {
  return (backend as unknown as { queue: { opts: Partial<WorkerOptions> } }).queue.opts
}

type Scan = (cursor: string) => Promise<[next: string, keys: string[]]>

/**
 * Returns for each server what scans its keys. A cluster's own SCAN asks one random node, and BullMQ's client passes `nodes` on to ioredis.
 * A client of one server may use another library.
 */
function scansOf(client: RedisClient, pattern: string, count: number): readonly Scan[] {
  if (!client.isCluster) return [(cursor) => client.scan(cursor, { MATCH: pattern, COUNT: count })]
  const nodes = (client as unknown as Cluster).nodes('master')
  return nodes.map((node) => (cursor) => node.scan(cursor, 'MATCH', pattern, 'COUNT', count))
}

/** The ends of the keys of a job, after its id. */
const OF_JOB: readonly string[] = ['', 'logs', 'dependencies', 'processed', 'failed', 'unsuccessful', 'lock']

/** Returns the ids of the jobs to which keys of a queue may belong. As in BullMQ, the ids have no colon. */
function jobsAmong(keys: readonly string[], base: string): readonly string[] {
  const ids = keys.flatMap((key) => {
    const [id = '', ...rest] = key.slice(base.length).split(':')
    return id === '' || RESERVED_IDS.includes(` ${id} `) || !OF_JOB.includes(rest.join(':')) ? [] : [id]
  })
  return [...new Set(ids)]
}

/** Scripts take '1' for true. */
function flag(value: boolean | undefined): string {
  return value === true ? '1' : ''
}
