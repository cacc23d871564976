// The feed's worker, whose locks are kept by a lock keeper from before a job's handler until Redis has its end.
import type { Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { LockRenewer } from '../locks/lock-renewer.ts'
import { renewLocks } from '../locks/renewal.ts'
import { FetchingWorker } from './fetching-worker.ts'

export interface LockedWorkerHost {
  readonly keeper: LockRenewer
  readonly redis: Redis
  readonly base: string
  readonly lockMs: number
  /** Milliseconds since 1970, by the clock that jobs are stamped by. */
  readonly now: () => number
  /** Another process may have the job, or could before that is known. */
  readonly lost: (job: Job) => void
}

export class LockedWorker extends FetchingWorker {
  /** Set before the first job: BullMQ's constructor fetches none. */
  keeping: LockedWorkerHost | undefined
  /** From before their handler until Redis has their end. */
  readonly held = new Set<Job>()

  // BullMQ counts a job as its own only while the processor runs. The slot is held longer: between the handler's end and
  // the command that says so, another handler may block the loop.
  override async processJob(job: Job, token: string, fetchNext?: () => boolean): ReturnType<Worker['processJob']> {
    const { keeping } = this
    if (keeping === undefined) return super.processJob(job, token, fetchNext)
    const { keeper, redis, base, lockMs, now, lost: tell } = keeping
    const id = job.id ?? ''
    let ageMs = Math.min(Math.max(now() - (job.processedOn ?? 0), 0), lockMs)
    if (keeper.isTooOld(ageMs)) {
      // It came while the loop was blocked, or Redis silent: another process may have started it, so it is not started here.
      const sentAt = performance.now()
      const lost = await renewLocks(redis, { base, lockMs }, [{ id, token }])
      if (lost.length > 0) return undefined
      ageMs = performance.now() - sentAt
    }
    const release = keeper.hold(id, token, ageMs, () => tell(job))
    this.held.add(job)
    try {
      return await super.processJob(job, token, fetchNext)
    } finally {
      this.held.delete(job)
      release()
    }
  }
}
