// BullMQ's Worker: which of its methods can be overridden, and what follows for a job from what its processor does.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { eventually } from '@bullpen/testkit'
import {
  type AsyncFifoQueue,
  DelayedError,
  type Job,
  UnrecoverableError,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { backendOf, plainBullmq, QUEUE } from './plain.fixture.ts'

class Overridden extends Worker {
  readonly runs = vi.fn()
  readonly processed = vi.fn()

  override async run(): Promise<void> {
    this.runs()
    await super.run()
  }

  override async processJob(...args: Parameters<Worker['processJob']>): ReturnType<Worker['processJob']> {
    this.processed(args[0].id)
    return super.processJob(...args)
  }
}

describe('a Worker', () => {
  it('fetches nothing until run is called, which resume calls again after a pause', async () => {
    const { queue, options, hasEnded } = await plainBullmq()
    const worker = new Overridden(QUEUE, async () => {}, { ...options, autorun: false })
    onTestFinished(() => worker.close())
    const fetches = vi.spyOn(backendOf(worker), 'moveToActive')
    const first = await queue.add('x', {})
    await worker.waitUntilReady()
    expect(fetches).not.toHaveBeenCalled()
    void worker.run()
    await hasEnded(first, 'completed')
    await worker.pause()
    await eventually(() => !worker.isRunning())
    await worker.resume()
    expect(worker.runs).toHaveBeenCalledTimes(2)
    await hasEnded(await queue.add('x', {}), 'completed')
  })

  it('passes each job to processJob, also one that it fetched with the end of another', async () => {
    const { queue, options, hasEnded } = await plainBullmq()
    const jobs = await queue.addBulk([1, 2, 3].map((n) => ({ name: 'x', data: { n } })))
    const worker = new Overridden(QUEUE, async () => {}, { ...options, autorun: false })
    onTestFinished(() => worker.close())
    const fetches = vi.spyOn(backendOf(worker), 'moveToActive')
    void worker.run()
    for (const job of jobs) await hasEnded(job, 'completed')
    expect(worker.processed.mock.calls.flat()).toEqual(jobs.map(({ id }) => id))
    // The first job was fetched alone. The others came with the answers to the ends, of which the last one had none.
    expect(fetches.mock.results.length).toBeLessThan(3)
  })

  it('fetches with moveToActive, and processes what else arrives in the queue of its loop when that finds nothing', async () => {
    const { queue, options, hasEnded, fetch, createWorker } = await plainBullmq()
    const jobs = await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
    const other = createWorker(async () => {})
    const [first, second] = [await fetch(other, 'a'), await fetch(other, 'b')]
    const processed: unknown[] = []
    const pending: number[] = []
    class Adding extends Worker {
      readonly #arriving = [Promise.resolve(first), Promise.resolve(second)]

      protected override async moveToActive(...args: [token: string, name?: string]): Promise<Job> {
        const loop: AsyncFifoQueue<Job> = this['mainLoopQueue']
        const [next] = this.#arriving.splice(0, 1)
        if (next === undefined) return super.moveToActive(...args)
        loop.add(next)
        await nextTurn()
        pending.push(loop.numQueued(), loop.numTotal())
        return undefined as unknown as Job
      }
    }
    const worker = new Adding(QUEUE, async ({ id, token }) => void processed.push([id, token]), {
      ...options,
      autorun: false,
      concurrency: 5,
    })
    onTestFinished(() => worker.close())
    void worker.run()
    for (const job of jobs) await hasEnded(job, 'completed')
    expect(processed).toEqual([
      [first.id, 'a'],
      [second.id, 'b'],
    ])
    // The loop counts its own fetch too.
    expect(pending.slice(0, 2)).toEqual([1, 2])
  })

  it('is waiting while it fetches because of a marker, and fetches without one if drained is false', async () => {
    const { queue, options, hasEnded } = await plainBullmq()
    const seen: boolean[] = []
    class Seeing extends Worker {
      protected override async moveToActive(...args: [token: string, name?: string]): Promise<Job> {
        seen.push(this['waiting'] !== null)
        const job = await super.moveToActive(...args)
        if (seen.length === 1) this['drained'] = false
        return job
      }
    }
    const worker = new Seeing(QUEUE, async () => {}, { ...options, autorun: false })
    onTestFinished(() => worker.close())
    void worker.run()
    await eventually(() => worker['waiting'] !== null)
    await hasEnded(await queue.add('x', {}), 'completed')
    expect(seen.slice(0, 3)).toEqual([false, false, true])
  })

  it('reports an error of the fetch loop by the rejection of run', async () => {
    const { options } = await plainBullmq()
    const worker = new Worker(QUEUE, async () => {}, { ...options, autorun: false })
    worker.on('error', () => {})
    onTestFinished(() => worker.close())
    // `mainLoop` is private in BullMQ's types.
    const broken = worker as unknown as { mainLoop: () => Promise<void> }
    broken.mainLoop = () => Promise.reject(new Error('broken'))
    await expect(worker.run()).rejects.toThrow('broken')
    expect(worker.isRunning()).toBe(false)
  })

  it('sets a mark when it starts, unless it makes no check for lost jobs', async () => {
    const { redis, keys, startWorker } = await plainBullmq()
    await startWorker(async () => {}, { skipStalledCheck: true }).waitUntilReady()
    expect(await redis.exists(keys.stalledCheck)).toBe(0)
    startWorker(async () => {}, { stalledInterval: 60_000 })
    await eventually(async () => (await redis.pttl(keys.stalledCheck)) > 50_000)
  })

  it('gives a signal to a processor with three parameters, and none to one with two', async () => {
    const { queue, startWorker, hasEnded } = await plainBullmq()
    const given: unknown[] = []
    const two = async function (_job: Job, _token?: string) {
      // biome-ignore lint/complexity/noArguments: the parameter that the function does not declare
      given.push(arguments[2])
    }
    const three = async (_job: Job, _token?: string, signal?: AbortSignal) => void given.push(signal)
    const first = startWorker(two)
    await hasEnded(await queue.add('x', {}), 'completed')
    await first.close()
    startWorker(three)
    await hasEnded(await queue.add('x', {}), 'completed')
    expect(given).toEqual([undefined, expect.any(AbortSignal)])
  })

  it.each([new WaitingError(), new DelayedError()])(
    'leaves a job alone when its processor throws a $name',
    async (error) => {
      const { queue, startWorker, fields, redis, keys } = await plainBullmq()
      const job = await queue.add('x', {}, { attempts: 5 })
      const thrown = Promise.withResolvers<void>()
      const worker = startWorker(async () => {
        thrown.resolve()
        throw error
      })
      const failed = vi.fn()
      worker.on('failed', failed)
      await thrown.promise
      await worker.close()
      expect(failed).not.toHaveBeenCalled()
      expect(await redis.lrange(keys.active, 0, -1)).toEqual([job.id])
      expect(await fields(job)).not.toHaveProperty('failedReason')
      expect(await redis.exists(keys.lock(job.id ?? ''))).toBe(1)
    },
  )

  it('stores the name of the worker with each job that it fetches', async () => {
    const { queue, createWorker, fetch, fields } = await plainBullmq()
    await queue.add('x', {})
    const job = await fetch(createWorker(async () => {}, { name: 'host:1' }))
    expect(await fields(job)).toMatchObject({ pb: 'host:1' })
    expect(job.processedBy ?? 'host:1').toBe('host:1')
  })

  it('looks for no lost job with skipStalledCheck', async () => {
    const { queue, startWorker, hasEnded } = await plainBullmq()
    const checked = Promise.withResolvers<void>()
    const skipping = startWorker(() => checked.promise, { stalledInterval: 1, skipStalledCheck: true })
    const skipped = vi.spyOn(backendOf(skipping), 'moveStalledJobsToWait')
    const first = await queue.add('x', {})
    const checking = startWorker(() => checked.promise, { stalledInterval: 1 })
    const checks = vi.spyOn(backendOf(checking), 'moveStalledJobsToWait')
    await eventually(() => checks.mock.calls.length >= 3)
    checked.resolve()
    await hasEnded(first, 'completed')
    expect(skipped).not.toHaveBeenCalled()
  })

  it('fetches nothing more once pause(true) has been called, and is paused at once', async () => {
    const { queue, startWorker, hasEnded, redis, keys } = await plainBullmq()
    const [first, second] = await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
    const worker = startWorker(async () => {
      void worker.pause(true)
      expect(worker.isPaused()).toBe(true)
    })
    await hasEnded(first as Job, 'completed')
    await eventually(() => !worker.isRunning())
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([second?.id])
    void worker.resume()
    await hasEnded(second as Job, 'completed')
  })

  it('renews no lock with skipLockRenewal', async () => {
    const { queue, startWorker, hasEnded } = await plainBullmq()
    const renewed = Promise.withResolvers<void>()
    const both = await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
    const times: Partial<WorkerOptions> = { lockDuration: 10_000, lockRenewTime: 10 }
    const skipping = startWorker(() => renewed.promise, { ...times, skipLockRenewal: true })
    const skipped = vi.spyOn(backendOf(skipping), 'extendLocks')
    const renewing = startWorker(() => renewed.promise, times)
    const renewals = vi.spyOn(backendOf(renewing), 'extendLocks')
    await eventually(() => renewals.mock.calls.length >= 3)
    renewed.resolve()
    for (const job of both) await hasEnded(job, 'completed')
    expect(skipped).not.toHaveBeenCalled()
  })

  it('renews the lock of a job once some time has passed since its `processedOn` by the machine’s clock', async () => {
    const { queue, startWorker } = await plainBullmq()
    const over = Promise.withResolvers<void>()
    onTestFinished(() => over.resolve())
    for (const jobId of ['now', 'in-an-hour']) await queue.add('x', {}, { jobId })
    const started: unknown[] = []
    const process = ({ id }: Job): Promise<void> => {
      started.push(id)
      return over.promise
    }
    const worker = startWorker(process, { concurrency: 2, lockDuration: 10_000, lockRenewTime: 10 })
    worker.on('active', (job) => {
      if (job.id === 'in-an-hour') job.processedOn = Date.now() + 3_600_000
    })
    const renewed = await new Promise((resolve) => {
      worker.on('locksRenewed', ({ jobIds }) => started.length === 2 && resolve(jobIds))
    })
    expect(renewed).toEqual(['now'])
  })
})

describe('a failed attempt', () => {
  /** A job whose processor throws `error` after it has changed the job. */
  async function failing(error: Error, change: (job: Job) => void, more: Partial<WorkerOptions> = {}) {
    const all = await plainBullmq()
    const job = await all.queue.add('x', {}, { attempts: 5, backoff: { type: 'bullpen' } })
    const failed = Promise.withResolvers<Job>()
    const worker = all.startWorker(async (started) => {
      change(started)
      throw error
    }, more)
    worker.on('failed', (ended) => ended !== undefined && failed.resolve(ended))
    const ended = await failed.promise
    return { ...all, job, ended }
  }

  it('is final if its error is an UnrecoverableError, whatever the attempts', async () => {
    const { job, hasEnded } = await failing(new UnrecoverableError('x'), () => {})
    await hasEnded(job, 'failed')
  })

  it('is retried or final by the attempts and the backoff in job.opts at that time, which are not stored', async () => {
    const { job, fields, redis, keys } = await failing(new Error('x'), (started) => {
      started.opts.attempts = 2
      started.opts.backoff = { type: 'fixed', delay: 60_000 }
    })
    expect(await redis.zscore(keys.delayed, job.id ?? '')).not.toBeNull()
    expect(JSON.parse((await fields(job))['opts'] ?? '')).toMatchObject({ attempts: 5, backoff: { type: 'bullpen' } })
    const last = await failing(new Error('x'), (started) => {
      started.opts.attempts = 1
    })
    await last.hasEnded(last.job, 'failed')
  })

  it('keeps as many of the newest stacks as job.opts.stackTraceLimit says at that time', async () => {
    const { job, fields } = await failing(
      Object.assign(new Error('x'), { stack: 'newest' }),
      (started) => {
        started.stacktrace = ['oldest', 'older']
        started.opts.stackTraceLimit = 2
      },
      { settings: { backoffStrategy: () => -1 } },
    )
    const stored = await fields(job)
    expect(JSON.parse(stored['stacktrace'] ?? '')).toEqual(['older', 'newest'])
    expect(JSON.parse(stored['opts'] ?? '')).not.toHaveProperty('stackTraceLimit')
  })
})
