// BullMQ's Worker with two of its methods overridden: a failed fetch loop is reported, and the lock of each job is renewed
// by Bullpen's lock renewer from before the handler starts until Redis has confirmed the end of the attempt.
import { type Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { LockRenewer } from '../locks/lock-renewer.ts'
import { renewLocks } from '../locks/renewal.ts'

export interface JobLocks {
  readonly renewer: LockRenewer
  readonly redis: Redis
  readonly base: string
  readonly lockMs: number
  /** Milliseconds since 1970, by the clock that jobs are stamped with. */
  readonly now: () => number
  /** Called when another process has the job, or could have it before this process finds out. */
  readonly onLost: (job: Job) => void
}

export class ConsumerWorker extends Worker {
  /** Called when the fetch loop ends with an error. */
  onFetchingFailed: (error: unknown) => void = () => {}
  /** Set before `run`: BullMQ's constructor fetches no job. */
  locks: JobLocks | undefined
  /** Jobs whose end Redis has not confirmed yet. */
  readonly unconfirmed = new Set<Job>()

  /** BullMQ also calls `run` itself, when a paused worker resumes after its last job has ended, and ignores the result. */
  override async run(): Promise<void> {
    try {
      await super.run()
    } catch (error) {
      this.onFetchingFailed(error)
    }
  }

  // BullMQ renews the lock of a job only while the processor runs. Here it is renewed until the end is confirmed: between
  // the handler's end and the command that reports it, another handler may block the event loop.
  override async processJob(job: Job, token: string, fetchNext?: () => boolean): ReturnType<Worker['processJob']> {
    if (this.locks === undefined) return super.processJob(job, token, fetchNext)
    const { renewer, redis, base, lockMs, now, onLost } = this.locks
    const id = job.id ?? ''
    let ageMs = Math.min(Math.max(now() - (job.processedOn ?? 0), 0), lockMs)
    if (renewer.isTooOld(ageMs)) {
      // The answer of the fetch was read late: the event loop was blocked, or Redis was silent. Start the job only if
      // no other process has it.
      const sentAt = performance.now()
      const lost = await renewLocks(redis, { base, lockMs }, [{ id, token }])
      if (lost.length > 0) return undefined
      ageMs = performance.now() - sentAt
    }
    const release = renewer.add(id, token, ageMs, () => onLost(job))
    this.unconfirmed.add(job)
    try {
      return await super.processJob(job, token, fetchNext)
    } finally {
      this.unconfirmed.delete(job)
      release()
    }
  }
}
