import { randomBytes } from 'node:crypto'
import { type Enqueued, TaskError } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { createTelemetry } from '@bullpen/telemetry/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { type Job, UnrecoverableError } from 'bullmq'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { decodeStack } from './codec.ts'
import { lockTask } from './locks/stored-lock.fixture.ts'
import { eager, listening, ownWorker, slow } from './plain-processor.fixture.ts'
import { escaped } from './uncaught-errors.ts'

const HOUR_MS = 3_600_000

function bullpenTask(): NewTask {
  const id = createTaskId('own', Date.now(), randomBytes(10))
  return newTask(slow, { n: 3 }, {}, { id, enqueuedAt: Date.now(), correlationId: 'c-1' })
}

describe('the end of an attempt', () => {
  it.each(['own.slow', 'own.brief'])(
    'of %s is emitted once, though the answer of its commit was lost',
    async (task) => {
      const [started, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const { openQueue, startWorker, ended, refused } = ownWorker(async ({ input }) => {
        if (input.n === 0) return input
        started.resolve()
        await over.promise
        return input
      })
      const proxy = await faultProxy(inject('redisUrl'))
      onTestFinished(() => proxy.close())
      const { worker, settled } = startWorker({ connection: { url: proxy.url } })
      const queue = openQueue()
      // From its second attempt on, the worker sends nothing twice because a script was unknown to Redis.
      await queue.add(task, { n: 0 })
      await settled()
      const { id = '' } = await queue.add(task, {})
      await started.promise
      proxy.cutAnswers()
      over.resolve()
      await eventually(async () => (await queue.getJobState(id)) === 'completed')
      expect(ended()).toHaveLength(1)
      proxy.reset()
      expect((await settled()).job.id).toBe(id)
      await worker.close()
      expect([ended(), refused()]).toMatchObject([[{}, { id, verdict: 'completed' }], []])
    },
  )

  it('is a refused commit if another attempt has the lock', async () => {
    const over = Promise.withResolvers<void>()
    const { openQueue, startWorker, ended, refused } = ownWorker(async ({ input }) => {
      await over.promise
      return input
    })
    startWorker({ skipStalledCheck: true })
    const queue = openQueue()
    const { id = '' } = await queue.add('own.slow', {})
    await eventually(async () => (await queue.getJobState(id)) === 'active')
    await lockTask(await queue.backend.client, { job: queue.toKey }, id, 'another owner')
    over.resolve()
    await eventually(() => refused().length === 1)
    expect(refused()).toMatchObject([{ id, refusal: 'lock_taken', verdict: 'completed' }])
    expect([ended(), await queue.getJobState(id)]).toEqual([[], 'active'])
  })

  it('is a refused commit if a function around the processor throws, because the Worker then fails the job', async () => {
    const { run, openQueue, startWorker, ended, refused } = ownWorker(({ input }) => input)
    const { settled } = startWorker({
      wrapped: async (job, token, signal) => {
        await run(job, token, signal)
        throw new UnrecoverableError('from the function around it')
      },
    })
    await openQueue().add('own.slow', {})
    expect((await settled()).job.failedReason).toBe('from the function around it')
    expect([ended(), refused()]).toMatchObject([[], [{ refusal: 'overridden', verdict: 'completed' }]])
  })
})

describe('a job that the team added', () => {
  it('is the task’s input, and its result is the output', async () => {
    const { openQueue, startWorker, run } = ownWorker(({ input }) => ({ n: input.n + 1 }))
    const { settled } = startWorker()
    const queue = openQueue()
    await queue.add('own.slow', { n: 1 })
    expect((await settled()).job.returnvalue).toEqual({ n: 2 })
    const { id = '' } = await queue.add('own.slow', {})
    await settled()
    expect(await queue.getJob(id)).toMatchObject({ returnvalue: { n: 8 } })
    expect(run).toHaveLength(3)
  })

  it('may look like an envelope: Bullpen’s own jobs are not recognised by their data', async () => {
    const { openQueue, startWorker, ended } = ownWorker(({ input }) => input)
    const { settled } = startWorker()
    await openQueue().add('own.slow', { v: 1, version: 1, input: { n: 1 }, timeoutMs: 'none' })
    expect((await settled()).job.failedReason).toContain('invalid_input')
    expect(ended()).toMatchObject([{ code: 'invalid_input', verdict: 'dead' }])
  })

  it('is retried by its definition, though it was added without attempts or backoff', async () => {
    const { openQueue, startWorker, ended } = ownWorker(() => {
      throw new TaskError('busy', 'not now', { retryable: true })
    })
    const { settled, errors } = startWorker()
    const queue = openQueue()
    const { id = '' } = await queue.add('own.slow', {})
    const { job, error } = await settled()
    expect(job).toMatchObject({ delay: HOUR_MS, attemptsMade: 1, opts: { attempts: 2 } })
    expect(error).toMatchObject({ message: 'DONE_ERROR (busy): not now', cause: { code: 'busy' } })
    expect(await queue.getJobState(id)).toBe('delayed')
    expect((await queue.getJob(id))?.opts).toMatchObject({ attempts: 0 })
    expect(ended()).toMatchObject([{ verdict: 'retrying', delayMs: HOUR_MS }])
    expect(errors).toEqual([])
  })

  it('keeps its own number of attempts; the delay is the definition’s, or the handler’s if that is longer', async () => {
    const { openQueue, startWorker } = ownWorker(() => {
      throw new TaskError('busy', 'not now', { retryable: true, retryAfter: '2h' })
    })
    const { settled } = startWorker()
    const queue = openQueue()
    await queue.add('own.slow', {}, { attempts: 9, backoff: { type: 'exponential', delay: 5 } })
    expect((await settled()).job).toMatchObject({ delay: 2 * HOUR_MS, opts: { attempts: 9 } })
    await queue.add('own.slow', {}, { attempts: 1 })
    expect(await (await settled()).job.getState()).toBe('failed')
  })

  it('fails permanently when its attempts are used up, with a record of each', async () => {
    const { openQueue, startWorker } = ownWorker(() => {
      throw new TypeError('broken')
    })
    const { settled } = startWorker()
    const queue = openQueue()
    const { id = '' } = await queue.add('own.eager', {})
    const errors = [await settled(), await settled(), await settled()].map(({ error }) => error)
    expect(errors.map((error) => error instanceof UnrecoverableError)).toEqual([false, false, true])
    const job = await queue.getJob(id)
    expect(job).toMatchObject({ attemptsMade: 3, failedReason: 'RECOVER_ERR (unexpected_error): TypeError: broken' })
    expect(job?.stacktrace?.map(decodeStack)).toMatchObject([
      { state: 'RECOVER_ERR', fencingToken: 1, attempt: 1 },
      { state: 'RECOVER_ERR', fencingToken: 2, attempt: 2 },
      { state: 'RECOVER_ERR', fencingToken: 3, attempt: 3 },
    ])
  })

  it('fails permanently on a permanent failure, and passes the handler’s error to the team’s listeners', async () => {
    const { openQueue, startWorker } = ownWorker(() => {
      throw new TaskError('gone', 'no such thing', { retryable: false })
    })
    const { settled } = startWorker()
    await openQueue().add('own.slow', {}, { attempts: 5 })
    const { job, error } = await settled()
    expect(await job.getState()).toBe('failed')
    expect(error).toBeInstanceOf(UnrecoverableError)
    expect(error).toMatchObject({ cause: { code: 'gone', message: 'no such thing' } })
  })

  it('of an unknown task is left to another process, which may know it, and the attempt does not count', async () => {
    const { openQueue, startWorker, ended } = ownWorker(({ input }) => input)
    startWorker()
    const job = await openQueue().add('own.other', {})
    await eventually(() => ended().length === 1)
    expect(await job.isDelayed()).toBe(true)
    expect(ended()).toMatchObject([{ code: 'unknown_task', verdict: 'snoozed' }])
    expect(await openQueue().getJob(job.id ?? '')).toMatchObject({ attemptsMade: 0 })
  })
})

describe('a job that Bullpen’s broker added', () => {
  it('is read and written as by a pool, so that the API shows it', async () => {
    const { openBroker, startWorker } = ownWorker(({ input, correlationId }) => {
      expect(correlationId).toBe('c-1')
      return input
    })
    const { settled } = startWorker()
    const broker = openBroker()
    const task = bullpenTask()
    await eventually(() => broker.enqueue(task).then(() => true))
    await settled()
    expect(await broker.find(task.id)).toMatchObject({
      status: 'completed',
      output: { n: 3 },
      attempts: [{ state: 'DONE_SUCCESS', fencingToken: 1, counted: true }],
    })
  })

  it('is retried after the delay of its definition', async () => {
    const { openBroker, startWorker } = ownWorker(() => {
      throw new Error('panic')
    })
    const { settled, errors } = startWorker()
    const broker = openBroker()
    const task = bullpenTask()
    await eventually(() => broker.enqueue(task).then(() => true))
    expect((await settled()).job.delay).toBe(HOUR_MS)
    expect(await broker.find(task.id)).toMatchObject({ status: 'retrying', attemptsMade: 1 })
    expect(errors).toEqual([])
  })
})

describe('a step', () => {
  it.each([
    ['own.eager', 3],
    // It has the default retry policy, with a second between attempts.
    ['own.brief', 2],
  ])('of %s runs once over all attempts, its result kept in the job itself', async (name, attempts) => {
    const keys: string[] = []
    const { openQueue, startWorker } = ownWorker(async ({ once, attempt }) => {
      const { n } = await once('pay', (key) => ({ n: keys.push(key) }))
      if (attempt < attempts) throw new TaskError('busy', 'not now')
      return { n: n + attempt }
    })
    const { settled, errors } = startWorker()
    const queue = openQueue()
    const jobs = await Promise.all([0, 1].map(() => queue.add(name, {}, { attempts })))
    const last: unknown[] = []
    for (let i = 0; i < 2 * attempts; i++) last.push((await settled()).job.returnvalue)
    expect(last.filter((value) => value !== null)).toHaveLength(2)
    // Two jobs have different keys.
    expect([keys.length, new Set(keys).size]).toEqual([2, 2])
    const { client } = await queue.getBackend()
    const hash = await (await client).hgetall(queue.toKey(jobs[0]?.id ?? ''))
    expect(hash['once:pay']).toMatch(/^\{"n":[12]\}$/)
    expect(errors).toEqual([])
  })

  it('resolves with the result that was stored first', async () => {
    const { openQueue, startWorker } = ownWorker(async ({ once, id }) => {
      const { client } = await queue.getBackend()
      return once('pay', async () => {
        await (await client).hset(queue.toKey(id), { 'once:pay': '{"n":1}' })
        return { n: 2 }
      })
    })
    const queue = openQueue()
    const { settled } = startWorker()
    await queue.add('own.slow', {})
    expect((await settled()).job.returnvalue).toEqual({ n: 1 })
  })

  it('is not stored by an attempt that has lost its lock', async () => {
    const codes: unknown[] = []
    const { openQueue, startWorker } = ownWorker(async ({ once, input, id }) => {
      const { client } = await queue.getBackend()
      await lockTask(await client, { job: queue.toKey }, id, 'another token')
      await once('pay', () => 1).catch(({ code }) => codes.push(code))
      return input
    })
    const queue = openQueue()
    const { worker } = startWorker()
    const { id = '' } = await queue.add('own.slow', {})
    await eventually(() => codes.length === 1)
    await worker.close()
    expect(codes).toEqual(['lock_lost'])
    const { client } = await queue.getBackend()
    expect(await (await client).hgetall(queue.toKey(id))).not.toHaveProperty('once:pay')
  })
})

describe('a long task', () => {
  it('that ignores its signal leaves its slot after timeout and grace, and its late result is dropped', async () => {
    const result = Promise.withResolvers<{ n: number }>()
    const { openQueue, startWorker, events, ended } = ownWorker(({ fencingToken }) =>
      fencingToken === 1 ? result.promise : { n: 2 },
    )
    const { settled } = startWorker()
    await openQueue().add('own.hurried', {})
    const first = await settled()
    expect(first.error?.message).toMatch(/^TERMINATED_TIMEOUT \(run_timeout\): .*50ms/)
    expect((await settled()).job.returnvalue).toEqual({ n: 2 })
    result.resolve({ n: 1 })
    await eventually(() => events.some(({ event }) => event === 'attempt.late'))
    expect(ended().map(({ verdict }) => verdict)).toEqual(['retrying', 'completed'])
  })

  it('is cancelled permanently by the Worker’s cancelJob, whatever attempts are left', async () => {
    const { started, handle } = listening()
    const { openQueue, startWorker, ended } = ownWorker(handle)
    const { worker, settled } = startWorker()
    const { id = '' } = await openQueue().add('own.slow', {})
    const { signal } = await started
    expect(worker.cancelJob(id, 'the customer left')).toBe(true)
    const { job, error } = await settled()
    expect(signal.reason).toMatchObject({ name: 'AbortError', message: 'the task was cancelled' })
    expect(await job.getState()).toBe('failed')
    expect(error).toMatchObject({ name: 'UnrecoverableError' })
    expect(ended()).toMatchObject([{ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', verdict: 'cancelled' }])
  })

  it('unlike a short one can be cancelled: a short one finishes, though cancelJob answers true', async () => {
    const result = Promise.withResolvers<{ n: number }>()
    const started = Promise.withResolvers<void>()
    const { openQueue, startWorker } = ownWorker(() => {
      started.resolve()
      return result.promise
    })
    const { worker, settled } = startWorker()
    const { id = '' } = await openQueue().add('own.brief', {})
    await started.promise
    expect(worker.cancelJob(id)).toBe(true)
    result.resolve({ n: 1 })
    expect((await settled()).job.returnvalue).toEqual({ n: 1 })
  })

  it('is requeued by the reason drain: no attempt is used, the record is stored, and another Worker runs it', async () => {
    const { started, handle } = listening()
    const { openQueue, startWorker } = ownWorker((context) => (context.fencingToken === 1 ? handle(context) : { n: 5 }))
    const queue = openQueue()
    const { worker } = startWorker()
    const { id = '' } = await queue.add('own.slow', {})
    await started
    const closed = worker.close()
    worker.cancelAllJobs('drain')
    await closed
    expect(await queue.getJobState(id)).toBe('waiting')
    const requeued = await queue.getJob(id)
    expect(requeued).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 })
    expect(requeued?.stacktrace?.map(decodeStack)).toMatchObject([{ state: 'TERMINATED_CTX_CLOSED', reason: 'drain' }])
    const { settled } = startWorker()
    expect((await settled()).job).toMatchObject({ returnvalue: { n: 5 }, attemptsStarted: 2, attemptsMade: 1 })
  })

  it('whose lock is lost is left to its new owner', async () => {
    const { started, handle } = listening()
    const { openQueue, startWorker, ended, refused } = ownWorker(handle)
    const queue = openQueue()
    const { worker } = startWorker({ lockRenewTime: 40, skipStalledCheck: true })
    worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => void worker.cancelJob(id, 'lock_lost')))
    const { id = '' } = await queue.add('own.slow', {})
    const { signal } = await started
    await lockTask(await queue.backend.client, { job: queue.toKey }, id, 'another owner')
    await eventually(() => refused().length === 1)
    expect(signal.aborted).toBe(true)
    expect(refused()).toMatchObject([{ reason: 'lock_lost', refusal: 'lock_lost', verdict: undefined }])
    expect(ended()).toEqual([])
    expect(await queue.getJobState(id)).toBe('active')
  })

  it('may snooze: it is scheduled again, and no attempt is used', async () => {
    const { openQueue, startWorker, ended } = ownWorker(async ({ snooze }) => snooze('1h'))
    startWorker()
    const queue = openQueue()
    const { id = '' } = await queue.add('own.slow', {})
    await eventually(async () => (await queue.getJobState(id)) === 'delayed')
    expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 0 })
    expect(ended()).toMatchObject([{ verdict: 'snoozed', delayMs: HOUR_MS }])
  })

  it('ends with RECOVER_ERR on an error that escaped its handler', async () => {
    const fates: string[] = []
    const { started, handle } = listening()
    const { openQueue, startWorker } = ownWorker((context) => {
      // As Node calls it: in the async context of what threw.
      setImmediate(() => fates.push(escaped(new Error('from a timer'))))
      return handle(context)
    })
    const { settled } = startWorker()
    await openQueue().add('own.slow', {})
    await started
    expect((await settled()).error?.message).toBe('RECOVER_ERR (escaped_error): Error: from a timer')
    expect(fates).toEqual(['attributed'])
    expect(escaped(new Error('of no handler'))).toBe('unattributed')
  })
})

describe('processor', () => {
  it('runs as many jobs at once as the Worker has concurrency', async () => {
    const result = Promise.withResolvers<void>()
    let running = 0
    const { openBroker, startWorker } = ownWorker(async ({ input }) => {
      running++
      await result.promise
      return input
    })
    const broker = openBroker()
    await eventually(() => broker.ping().then(() => true))
    const tasks = Array.from({ length: 25 }, bullpenTask)
    for (const task of tasks) await broker.enqueue(task)
    const { settled } = startWorker({ concurrency: 10 })
    await eventually(() => running === 10)
    result.resolve()
    for (const _ of tasks) await settled()
    expect(running).toBe(25)
  })

  it('serves two Workers: the same job ids in different queues have different child tasks', async () => {
    const children: NewTask[] = []
    const enqueue = async (child: NewTask): Promise<Enqueued> => {
      children.push(child)
      return { id: child.id, action: 'created' }
    }
    const { openQueue, startWorker, ended } = ownWorker(
      async (context) => {
        await context.enqueue(eager, {})
        return context.input
      },
      { enqueue },
    )
    const workers = [startWorker({ queue: 'own' }), startWorker({ queue: 'other' })]
    const jobs = [await openQueue('own').add('own.slow', {}), await openQueue('other').add('own.slow', {})]
    expect(jobs.map(({ id }) => id)).toEqual(['1', '1'])
    for (const { settled } of workers) expect((await settled()).event).toBe('completed')
    expect(new Set(ended().map(({ queue }) => queue))).toEqual(new Set(['own', 'other']))
    expect(new Set(children.map(({ id }) => id)).size).toBe(2)
  })

  it('derives the same child id in the next attempt of the same job', async () => {
    const children: string[] = []
    const { openQueue, startWorker } = ownWorker(
      async (context) => {
        await context.enqueue(eager, {})
        if (context.attempt === 1) throw new TaskError('again', 'again', { retryable: true })
        return context.input
      },
      { enqueue: async ({ id }) => ({ id, action: children.push(id) === 1 ? 'created' : 'existing' }) },
    )
    const { settled } = startWorker()
    await openQueue().add('own.eager', {})
    expect([(await settled()).event, (await settled()).event]).toEqual(['failed', 'completed'])
    expect(children).toEqual([children[0], children[0]])
  })

  it('names the missing option when a handler enqueues without one', async () => {
    const { openQueue, startWorker } = ownWorker(async (context) => {
      await context.enqueue(eager, {})
      return context.input
    })
    const { settled } = startWorker()
    await openQueue().add('own.slow', {})
    expect((await settled()).error?.cause).toMatchObject({ code: 'invalid_configuration' })
  })

  it('gives handlers their resources, a log with the task’s fields, and middleware', async () => {
    const lines: unknown[] = []
    const log = { debug() {}, warn() {}, error() {}, info: (...line: unknown[]) => lines.push(line) }
    const { openQueue, startWorker } = ownWorker(
      ({ log, resources }) => {
        log.info({ code: 'x' }, 'working')
        return resources as { n: number }
      },
      { log, resources: { n: 4 }, middleware: [async (_, next) => ({ ...((await next()) as object), n: 6 })] },
    )
    const { settled } = startWorker()
    await openQueue().add('own.slow', {})
    expect((await settled()).job.returnvalue).toEqual({ n: 6 })
    expect(lines).toEqual([[{ task: 'own.slow', id: '1', fencingToken: 1, attempt: 1, code: 'x' }, 'working']])
  })

  it('is counted in Bullpen’s metrics', async () => {
    const telemetry = createTelemetry({ role: 'worker', version: '0' })
    const { openQueue, startWorker } = ownWorker(({ input }) => input, { sink: telemetry.sink })
    const { settled } = startWorker()
    const queue = openQueue()
    await queue.addBulk([1, 2].map((n) => ({ name: 'own.slow', data: { n } })))
    await queue.add('own.slow', { n: 'three' })
    for (let jobs = 0; jobs < 3; jobs++) await settled()
    const { text } = await telemetry.exposition()
    const labels = 'queue="own",task="own.slow"'
    expect(text).toContain(`bullpen_attempts_started_total{${labels}} 3`)
    expect(text).toContain(`bullpen_attempts_ended_total{${labels},state="DONE_SUCCESS",verdict="completed"} 2`)
    expect(text).toContain(`bullpen_attempts_ended_total{${labels},state="DONE_ERROR",verdict="dead"} 1`)
  })
})

describe('BullMQ, as processor() relies on it,', () => {
  it('passes a signal to a function with three parameters, wrapped or not, and to no other', async () => {
    const { started, handle } = listening()
    const { openQueue, startWorker, run } = ownWorker(handle)
    const queue = openQueue()
    const two = startWorker({ wrapped: (job: Job, token?: string) => run(job, token) })
    const { id = '' } = await queue.add('own.slow', {})
    await started
    expect(two.worker.cancelJob(id)).toBe(false)
    await two.worker.close(true)

    const again = listening()
    const wrapped = ownWorker(again.handle)
    const three = startWorker.call(undefined, {
      queue: 'wrapped',
      wrapped: (job: Job, token?: string, signal?: AbortSignal) => wrapped.run(job, token, signal),
    })
    const other = await openQueue('wrapped').add('own.slow', {})
    await again.started
    expect(three.worker.cancelJob(other.id ?? '')).toBe(true)
    expect((await three.settled()).error?.name).toBe('UnrecoverableError')
  })

  it('retries a job at once, up to its attempts, if code around the processor throws', async () => {
    const throwing = async (_job: Job, _token?: string, _signal?: AbortSignal): Promise<never> => {
      throw new Error('thrown around the processor')
    }
    const { openBroker, startWorker } = ownWorker(({ input }) => input)
    const broker = openBroker()
    const { settled, errors } = startWorker({ wrapped: throwing })
    const task = bullpenTask()
    await eventually(() => broker.enqueue(task).then(() => true))
    for (let attempt = 1; attempt <= task.maxAttempts; attempt++)
      expect((await settled()).job.attemptsMade).toBe(attempt)
    expect(await broker.find(task.id)).toMatchObject({ status: 'dead' })
    expect(errors).toEqual([])
  })

  it('aborts no signal when the Worker closes: it waits, or with force abandons the handler', async () => {
    const { started, handle } = listening()
    const { openQueue, startWorker } = ownWorker(handle)
    const { worker } = startWorker()
    await openQueue().add('own.slow', {})
    const { signal } = await started
    await worker.close(true)
    expect(signal.aborted).toBe(false)
  })
})
