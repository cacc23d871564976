// BullMQ's backend over Bullpen's own scripts: the methods with which a Queue and its jobs change tasks.
//
// Each method runs one script, which uses Redis's clock, and returns or throws what BullMQ's own method would.
import type { RedisClient, RedisQueueBackend } from 'bullmq'
import type { Cluster } from 'ioredis'
import { RESERVED_IDS } from '../keys.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import {
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
  removeUnprocessedChildrenScript,
  retryEndedScript,
  returnJobsScript,
  waitForChildrenScript,
} from './scripts.ts'

type ChangeMethods = Pick<
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

/** What a script has replied about a job, and what BullMQ names in its error. */
interface Answer {
  readonly code: number
  readonly jobId: string
  readonly command: string
  readonly state?: string
  readonly parentKey?: string
}

export function changeMethods(backend: RedisQueueBackend, run: ScriptRunner): ChangeMethods {
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
