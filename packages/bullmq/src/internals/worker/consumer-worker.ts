// BullMQ's Worker with some of its methods overridden, for pools:
//
//   - A fetch asks for the tasks of several free slots at once, and a handler starts as soon as its task has arrived. BullMQ's loop fetches
//     slot by slot, and starts no handler before all slots are filled or a fetch has found nothing. If Redis is far away, the first
//     handlers would wait for many round trips, and the locks of their tasks might expire meanwhile.
//   - A fetch that has failed is reported, and repeated after a pause. BullMQ's loop would repeat it at once.
//   - Bullpen's lock renewer renews each job's lock from before the handler starts until Redis has confirmed the end of the attempt.
import { type AsyncFifoQueue, type Job, Worker } from 'bullmq'
import type { FetchHealth } from '../../fetch-health.ts'
import type { LockRenewer, RenewedLock } from '../../locks/lock-renewer.ts'
import { renewLocks } from '../../locks/renewal.ts'
import { type Commander, runnerOn } from '../../scripts/script.ts'

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

/**
 * By how many tasks each fetch that finds one raises the number that is fetched at once. While all fetches find one, it is 1, 4, 16, 64 and
 * so on, so that a burst fills the slots within a few round trips, and a lone task costs no command more.
 */
const MORE_FOR_EACH_FOUND = 3

/** BullMQ's types do not say that a fetch may find nothing. */
const NO_JOB = undefined as unknown as Job

const ARRIVED = Symbol('a promise in the queue of the loop has settled')
const arrived = (): typeof ARRIVED => ARRIVED

/** Resolves when something arrives in the queue of BullMQ's loop. */
function arrival(queue: AsyncFifoQueue<Job>): Promise<typeof ARRIVED> {
  const next: Promise<unknown> = queue['wait']()
  return next.then(arrived, arrived)
}

export class ConsumerWorker extends Worker {
  /** Called when the fetch loop ends with an error. */
  onLoopFailed: (error: unknown) => void = () => {}
  /** Learns whether fetches fail. */
  health: FetchHealth | undefined
  /** Must be set before `run`. BullMQ's constructor does not fetch any jobs. */
  locks: JobLocks | undefined
  /** Called before BullMQ fails a job without calling the processor. */
  onRefusedStart: (job: Job) => void = () => {}
  /** The jobs whose end Redis has not confirmed yet. */
  readonly unconfirmed = new Map<Job, RenewedLock>()
  /** How many tasks may be fetched at once. */
  #ahead = 1
  /** How many fetches are under way, including those that pause because they have failed. */
  #underWay = 0
  #tokens = 0

  /** BullMQ also calls `run` itself, when a paused worker resumes after its last job has ended, and ignores the result. */
  override async run(): Promise<void> {
    try {
      await super.run()
    } catch (error) {
      this.onLoopFailed(error)
    }
  }

  // BullMQ's loop calls this method while it has a free slot, and waits for the result. If that is nothing, the loop processes what else
  // has arrived in its queue. Each promise in the queue takes a slot.
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    const queue: AsyncFifoQueue<Job> | null = this['mainLoopQueue']
    if (queue === null) return super.moveToActive(token, name)
    // A marker that has woken the loop is gone, so that a fetch must follow.
    const isWoken = this['waiting'] !== null
    if (!isWoken && queue.numQueued() > 0) return NO_JOB
    const more = Math.min(this.#ahead - this.#underWay, this.concurrency - queue.numTotal())
    const count = isWoken || this.#underWay === 0 ? Math.max(1, more) : more
    if (count <= 0) {
      await arrival(queue)
      return NO_JOB
    }
    const first = this.#fetch(token, name)
    for (let i = 1; i < count; i++) queue.add(this.#fetch(`${this.id}+${this.#tokens++}`, name))
    const job = await Promise.race([first, arrival(queue)])
    if (job !== ARRIVED) return job
    queue.add(first)
    return NO_JOB
  }

  /** Lets the next fetch follow at once, without a wait for a marker. */
  fetchAtOnce(): void {
    this['drained'] = false
  }

  async #fetch(token: string, name: string | undefined): Promise<Job> {
    this.#underWay++
    try {
      const job = await super.moveToActive(token, name)
      this.#ahead = job === NO_JOB ? 1 : this.#ahead + MORE_FOR_EACH_FOUND
      this.health?.works()
      return job
    } catch (error) {
      await this.#failed(error)
      return NO_JOB
    } finally {
      this.#underWay--
    }
  }

  /** Resolves when the next fetch may follow. */
  async #failed(error: unknown): Promise<void> {
    if (this.closing) return
    this.#ahead = 1
    // A marker that woke the loop is gone.
    this.fetchAtOnce()
    await this.health?.failed(error)
  }

  // BullMQ renews a job's lock only while the processor runs. Here the lock is renewed until the job's end is confirmed, because
  // another handler may block the event loop between the handler's end and the command that reports it.
  override async processJob(job: Job, token: string, fetchNext?: () => boolean): ReturnType<Worker['processJob']> {
    // The end of another attempt may have fetched the job.
    this.health?.works()
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
