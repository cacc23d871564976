// Passes the jobs that a consumer has fetched to its pool, and commits the pool's verdicts.
//
// A job is passed on at once if the consumer's copy of the cancel rules is fresh, the job has never lost its process, and its data contains
// its input. Otherwise, it waits until the copy is fresh, and its quarantine and its input have been read. A task whose cancellation is
// known is passed on with the field `cancelled`. If the job has lost its lock since its fetch, it is left to its new owner.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import type { ConsumerHost, RunTask, TaskQuarantine } from '@bullpen/engine/internal'
import { type Job, WaitingError } from 'bullmq'
import { type CancelSubscriber, causeOf } from './cancel/by-id.ts'
import type { RuleCache } from './cancel/rule-cache.ts'
import { addKeptInput, hasKeptInput } from './internals/worker/kept-input.ts'
import { mayBeQuarantined, readQuarantine } from './internals/worker/quarantined-job.ts'
import type { QueueKeys } from './keys.ts'
import { type CommitHost, commit, postpone, release, toFetchedTask } from './processor.ts'
import type { Commander } from './scripts/script.ts'

/**
 * The delay before a task is released because the pool did not take it or its input could not be read, in ms. Without it, the task would
 * be fetched again at once.
 */
const RELEASE_DELAY_MS = 50

export interface FetchedJobsOptions {
  readonly redis: Commander
  readonly keys: QueueKeys
  readonly runTask: RunTask
  readonly slots: Pick<ConsumerHost, 'released'>
  readonly rules: RuleCache
  readonly cancels: CancelSubscriber
  readonly codec: PayloadCodec | undefined
  readonly commitHost: CommitHost
  /** Returns whether the lock of this fetched job is still recent enough. */
  readonly holdsLock: (job: Job) => boolean
}

export interface FetchedJobs {
  /** BullMQ's processor. Resolves with what BullMQ stores as the job's result. */
  process(job: Job, token: string): Promise<unknown>
}

export function createFetchedJobs(options: FetchedJobsOptions): FetchedJobs {
  const { redis, keys, runTask, slots, rules, cancels, codec, commitHost, holdsLock } = options
  const released = ({ id }: Job): void => slots.released(id as TaskId)

  const run = (job: Job, token: string, quarantine?: TaskQuarantine): Promise<unknown> => {
    // Another handler may have blocked the event loop since the fetch. Report to BullMQ that the job was moved, because another process may
    // already own it.
    if (!holdsLock(job)) return Promise.reject(new WaitingError())
    const task = toFetchedTask(job, token, codec, commitHost.events.open(job, token), quarantine)
    const rule = rules.matching(task)
    const by = cancels.cancelledBy(task)
    const cancelled = rule ?? (by === undefined ? undefined : causeOf(by))
    return runTask(
      cancelled === undefined ? task : { ...task, cancelled: { reason: cancelled.reason, by: cancelled.by } },
      (result) => commit(result, job, token, commitHost, rule?.id),
      (delayMs) =>
        delayMs === undefined ? releaseLater(job, token) : postpone(job, token, delayMs, () => released(job)),
    )
  }

  const releaseLater = (job: Job, token: string): Promise<never> =>
    sleep(RELEASE_DELAY_MS).then(() => release(job, token, () => released(job)))

  const runLater = async (job: Job, token: string): Promise<unknown> => {
    const quarantine = mayBeQuarantined(job) ? await readQuarantine(job, token, redis, keys) : undefined
    const isWhole = await addKeptInput(job)
    await rules.untilFresh()
    // The consumer was closed, or its event loop was blocked: another process may own the job.
    if (!rules.isFresh()) throw new WaitingError()
    return isWhole ? run(job, token, quarantine) : releaseLater(job, token)
  }

  return {
    process: (job, token) =>
      rules.isFresh() && !mayBeQuarantined(job) && !hasKeptInput(job) ? run(job, token) : runLater(job, token),
  }
}
