// BullMQ's Worker with two of its methods overridden. One reports a failure of the fetch loop. The other lets Bullpen's lock
// renewer renew each job's lock from before the handler starts until Redis has confirmed the end of the attempt.
import { type Job, Worker } from 'bullmq'
import type { LockRenewer, RenewedLock } from '../../locks/lock-renewer.ts'
import { renewLocks } from '../../locks/renewal.ts'
import { type Commander, runnerOn } from '../../scripts/script.ts'
import { attachedWorkerId } from './attached-worker-id.ts'

export interface JobLocks {
  readonly renewer: LockRenewer
  readonly redis: Commander
  readonly base: string
  readonly lockMs: number
  /** Returns the time in milliseconds since 1970, by the clock that jobs are stamped with. */
  readonly now: () => number
  /** Called when another process has the job, or could take it before this process notices. */
  readonly onLost: (job: Job, isByStall: boolean) => void
}

export class ConsumerWorker extends Worker {
  override readonly id = attachedWorkerId()
  /** Called when the fetch loop ends with an error. */
  onFetchingFailed: (error: unknown) => void = () => {}
  /** Must be set before `run`. BullMQ's constructor does not fetch any jobs. */
  locks: JobLocks | undefined
  /** Called before BullMQ fails a job without calling the processor. */
  onRefusedStart: (job: Job) => void = () => {}
  /** The jobs whose end Redis has not confirmed yet. */
  readonly unconfirmed = new Map<Job, RenewedLock>()

  /** BullMQ also calls `run` itself, when a paused worker resumes after its last job has ended, and ignores the result. */
  override async run(): Promise<void> {
    try {
      await super.run()
    } catch (error) {
      this.onFetchingFailed(error)
    }
  }

  // BullMQ renews a job's lock only while the processor runs. Here the lock is renewed until the job's end is confirmed, because
  // another handler may block the event loop between the handler's end and the command that reports it.
  override async processJob(job: Job, token: string, fetchNext?: () => boolean): ReturnType<Worker['processJob']> {
    if (this.locks === undefined) return super.processJob(job, token, fetchNext)
    const { renewer, redis, base, lockMs, now, onLost } = this.locks
    const id = job.id ?? ''
    let ageMs = Math.min(Math.max(now() - (job.processedOn ?? 0), 0), lockMs)
    if (renewer.isTooOld(ageMs)) {
      // The reply to the fetch was read late, because the event loop was blocked or Redis did not respond. Start the job only if
      // no other process has it.
      const sentAt = performance.now()
      const lost = await renewLocks(runnerOn(redis), { base, lockMs }, [{ id, token }])
      if (lost.length > 0) return undefined
      ageMs = performance.now() - sentAt
    }
    const lock = renewer.add(id, token, ageMs, (isByStall) => onLost(job, isByStall))
    this.unconfirmed.set(job, lock)
    if (job.deferredFailure !== undefined) this.onRefusedStart(job)
    try {
      return await super.processJob(job, token, fetchNext)
    } finally {
      this.unconfirmed.delete(job)
      lock.release()
    }
  }
}
