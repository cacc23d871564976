// Tests which fetched jobs are passed on, at once or after they had to wait.
import { type Job, WaitingError } from 'bullmq'
import { expect, it } from 'vitest'
import { createFetchedJobs, type FetchedJobsOptions } from './fetched-jobs.ts'

/** A consumer that has lost the locks of some jobs, and whose copy of the cancel rules is stale until `refresh` is called. */
function waiting() {
  const lost = new Set<Job>()
  const fresh = Promise.withResolvers<void>()
  const run: number[] = []
  let isFresh = false
  const options: Partial<Record<keyof FetchedJobsOptions, unknown>> = {
    runTask: async ({ fencingToken }: { readonly fencingToken: number }) => void run.push(fencingToken),
    rules: { isFresh: () => isFresh, untilFresh: () => fresh.promise, matching: () => undefined },
    cancels: { cancelledBy: () => undefined },
    commitHost: { events: { open: () => undefined } },
    holdsLock: (job: Job) => !lost.has(job),
  }
  // Only the options that a waiting job uses are given.
  const jobs = createFetchedJobs(options as unknown as FetchedJobsOptions)
  const job = (attemptsStarted: number) =>
    ({ id: 'q-1', name: 'test', data: {}, opts: {}, attemptsStarted, attemptsMade: 0, stalledCounter: 0 }) as Job
  return {
    ...{ jobs, run, job, lost },
    refresh() {
      isFresh = true
      fresh.resolve()
    },
  }
}

it('a job that has lost its lock while it waited is left to its new owner', async () => {
  const { jobs, run, job, lost, refresh } = waiting()
  const first = job(1)
  const processed = jobs.process(first, 'a')
  lost.add(first)
  refresh()
  await expect(processed).rejects.toThrow(WaitingError)
  expect(run).toEqual([])
})

it('a job that has lost its lock since its fetch, because another handler blocked the event loop, is left to its new owner', async () => {
  const { jobs, run, job, lost, refresh } = waiting()
  refresh()
  const first = job(1)
  lost.add(first)
  await expect(jobs.process(first, 'a')).rejects.toThrow(WaitingError)
  expect(run).toEqual([])
})

it('a job that waits is passed on although an earlier attempt, which this consumer still runs, has lost its lock', async () => {
  const { jobs, run, job, lost, refresh } = waiting()
  const [first, second] = [job(1), job(2)]
  const processed = jobs.process(second, 'b')
  lost.add(first)
  refresh()
  await processed
  expect(run).toEqual([2])
})
