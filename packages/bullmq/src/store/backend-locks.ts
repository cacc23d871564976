// BullMQ's backend over Bullpen's own scripts: the methods with which a team's own Worker renews its locks, and looks for lost tasks.
import type { RedisQueueBackend, WorkerOptions } from 'bullmq'
import { type Lock, renewLocks } from '../locks/renewal.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import { recoverLostTasks } from './recover.ts'

type LockMethods = Pick<RedisQueueBackend, 'extendLock' | 'extendLocks' | 'moveStalledJobsToWait'>

export function lockMethods(backend: RedisQueueBackend, run: ScriptRunner): LockMethods {
  const base = backend.toKey('')
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
      const { ids } = await recoverLostTasks(run, { base, maxLosses: maxStalledCount, checkMs: stalledInterval })
      return ids
    },
  }
}

/** The property `queue` of a backend is protected in BullMQ's types. */
function workerOptionsOf(backend: RedisQueueBackend): Partial<WorkerOptions> {
  return (backend as unknown as { queue: { opts: Partial<WorkerOptions> } }).queue.opts
}
