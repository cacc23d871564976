import { readFile } from 'node:fs/promises'
import {
  createGroupId,
  defineCatalogue,
  defineHandler,
  defineTask,
  rateLimited,
  type TaskContext,
  TaskError,
} from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { simulate } from '../simulate/simulate.ts'
import { runTask } from './run-task.ts'

const schemas = { input: z.object({ n: z.int().default(7) }), output: z.object({ n: z.int() }) }
const short = defineTask({ name: 'test.short', queue: 'q', kind: 'short', ...schemas })
const long = defineTask({ name: 'test.long', queue: 'q', timeout: '5m', grace: '10s', ...schemas })
const isolated = defineTask({ name: 'test.isolated', queue: 'q', isolation: 'process', ...schemas })
const TRACE = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }
const child = defineTask({ name: 'test.child', queue: 'q', ...schemas })

const any = defineTask({ name: 'test.any', queue: 'q', timeout: '5m', input: z.object({}), output: z.any() })
const [GROUP, TASK] = [createGroupId(1, new Uint8Array(10)), createTaskId('q', 1, new Uint8Array(10))]

/** Runs until its attempt is signalled. */
const untilSignalled = ({ signal }: { signal: AbortSignal }) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('runTask', () => {
  it.each([short, long])('runs $name through its states to its output', async (definition) => {
    const run = await runTask(definition, ({ input }) => input, {})
    expectTypeOf(run.output).toEqualTypeOf<{ n: number } | undefined>()
    expect(run).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'DONE_SUCCESS'],
      status: 'completed',
      output: { n: 7 },
      attempts: [{ fencingToken: 1, attempt: 1, state: 'DONE_SUCCESS' }],
      errors: [],
      fencingToken: 1,
      attemptsMade: 1,
      elapsedMs: 0,
    })
  })

  it('accepts a handler of defineHandler, and requires the resources that it needs', async () => {
    type Resources = { readonly add: (n: number) => number }
    const handler = defineHandler(
      long,
      import.meta.url,
      async ({ input, resources }: TaskContext<typeof long, Resources>) => ({ n: resources.add(input.n) }),
    )
    const run = await runTask(long, handler, { n: 1 }, { resources: { add: (n) => n + 1 } })
    expect(run.output).toEqual({ n: 2 })
    // @ts-expect-error: the resources are missing.
    expect(await runTask(long, handler, { n: 1 })).toMatchObject({ status: 'dead' })
  })

  it('returns the registered follow-ups and compensations that the end of the task enqueues', async () => {
    const handler = defineHandler(long, import.meta.url, async (context) => {
      const { input, attempt, onSuccess, onFailure, onEnd, compensate } = context
      onSuccess(child, { n: 1 })
      for (const n of [2, 3]) await onFailure(child, { n })
      await onEnd(child, { n: 4 })
      await onEnd(child, { n: 5 * attempt }, { key: 'attempt' })
      await compensate(child, { n: 6 })
      if (input.n === 13) throw new TaskError('unlucky', 'thirteen')
      return input
    })
    const inputs = (tasks: readonly { readonly input: unknown }[]) => tasks.map(({ input }) => input)
    const [lives, dies] = [await runTask(long, handler, { n: 1 }), await runTask(long, handler, { n: 13 })]
    expect(inputs(lives.followUps)).toEqual([{ n: 4 }, { n: 5 }, { n: 1 }])
    expect(inputs(dies.followUps)).toEqual([{ n: 3 }, { n: 4 }, { n: 25 }])
    expect(lives.compensations).toEqual([])
    expect(inputs(dies.compensations)).toEqual([{ n: 6 }])
  })

  it('returns the follow-ups of the definition that the end of the task enqueues', async () => {
    const followed = defineTask({
      ...{ name: 'test.followed', queue: 'q' },
      ...schemas,
      onSuccess: (followUp) => [followUp(child, ({ input, output }) => ({ n: 10 * input.n + output.n }))],
      onFailure: (followUp) => [followUp(child, ({ input: { n = 0 } }) => ({ n: 20 * n }))],
      onEnd: (followUp) => [
        followUp(
          () => child,
          ({ input: { n = 0 } }) => ({ n: 30 * n }),
        ),
      ],
    })
    const run = await runTask(followed, ({ input }) => ({ n: input.n + 1 }), { n: 1 })
    expect(run.followUps).toEqual([
      { task: child.name, input: { n: 30 } },
      { task: child.name, input: { n: 12 } },
    ])
    const failed = await runTask(followed, () => Promise.reject(new Error('no')), { n: 2 })
    expect(failed.followUps.map(({ input }) => input)).toEqual([{ n: 40 }, { n: 60 }])
    const panicked = await runTask(followed, () => ({ n: Number.MAX_SAFE_INTEGER }), { n: 1 })
    expect(panicked).toMatchObject({ status: 'dead', attempts: Array(5).fill({ reason: 'invalid_follow_up' }) })
  })

  it('retries as the definition says, and skips the backoff', async () => {
    const run = await runTask(
      long,
      ({ attempt, input }) => {
        if (attempt < 3) throw new TaskError('busy', 'not now')
        return input
      },
      {},
    )
    expect(run.states.filter((state) => state !== 'NEW' && state !== 'IN_PROCESS')).toEqual([
      'DONE_ERROR',
      'DONE_ERROR',
      'DONE_SUCCESS',
    ])
    expect(run.elapsedMs).toBe(3_000)
  })

  it('reports what was thrown when all attempts are used', async () => {
    const broken = new Error('broken')
    const handler = () => {
      throw broken
    }
    expect(await runTask(short, handler, {}, { maxAttempts: 2 })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'RECOVER_ERR', 'NEW', 'IN_PROCESS', 'RECOVER_ERR'],
      status: 'dead',
      errors: [broken, broken],
      output: undefined,
    })
  })

  it('times a handler out after five minutes of fake time', async () => {
    const run = await runTask(long, untilSignalled, {}, { maxAttempts: 1 })
    expect(run).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_TIMEOUT'],
      attempts: [{ reason: 'run_timeout' }],
      elapsedMs: 300_000,
    })
  })

  it('reports a handler that returned too late, and by how much', async () => {
    const clock = fakeClock()
    const handler = () => new Promise<{ n: number }>((resolve) => clock.after(400_000, () => resolve({ n: 1 })))
    expect(await runTask(long, handler, {}, { maxAttempts: 1, clock })).toMatchObject({
      status: 'dead',
      late: [{ fencingToken: 1, overrunMs: 100_000 }],
      elapsedMs: 310_000,
    })
  })

  it('expires a task that is not started within its queue timeout', async () => {
    const call = { delay: '2s', queueTimeout: '1s' } as const
    const run = await runTask(long, untilSignalled, {}, { call, drainAt: '1s' })
    expect(run).toMatchObject({
      states: [],
      status: 'expired',
      fencingToken: 0,
      attempts: [{ fencingToken: 0, reason: 'queue_timeout' }],
    })
    expect(run.elapsedMs).toBeLessThanOrEqual(5_000)
  })

  it('refuses an input that the API would refuse, and says which field is wrong', async () => {
    const wrong = { n: 'seven' } as unknown as { n: number }
    await expect(runTask(long, untilSignalled, wrong)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(
        /^the input does not match the schema of test\.long: \/input\/n: .*expected number, received string/,
      ),
      errors: [{ pointer: '/input/n' }],
    })
  })

  it('says why a task did not complete, in its summary and when its result is read', async () => {
    const busy = new TaskError('busy', 'not now')
    const run = await runTask(long, () => Promise.reject(busy), {}, { maxAttempts: 2 })
    const summary = 'dead after 2 of 2 attempts; the last one failed: busy: not now'
    expect(run.summary).toBe(summary)
    expect(() => run.result()).toThrow(expect.objectContaining({ message: summary, cause: busy }))
  })

  it('returns the output of a completed task as its result', async () => {
    const run = await runTask(long, ({ input }) => input, { n: 3 })
    expect(run.summary).toBe('completed after 1 of 5 attempts')
    expect(run.result()).toEqual({ n: 3 })
  })

  it('stores input and output as JSON', async () => {
    const dates = defineTask({ name: 'test.dates', queue: 'q', input: z.unknown(), output: z.unknown() })
    const at = new Date(0)
    const run = await runTask(dates, ({ input }) => [input, at, undefined], { at, gone: undefined })
    expect(run.record.input).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    expect(run.output).toEqual([{ at: '1970-01-01T00:00:00.000Z' }, '1970-01-01T00:00:00.000Z', null])
  })

  it('runs an isolated task inline', async () => {
    expect(await runTask(isolated, ({ input }) => input, { n: 3 })).toMatchObject({ output: { n: 3 } })
  })

  it('refuses a handler of another task', async () => {
    const other = defineHandler(child, import.meta.url, ({ input }) => input)
    await expect(runTask(long, other as never, {})).rejects.toMatchObject({ code: 'invalid_handler' })
  })
})

describe('a run records', () => {
  it('log lines, progress and snoozes', async () => {
    const run = await runTask(
      long,
      async ({ input, log, progress, snooze, fencingToken }) => {
        log.info({ step: 1 }, 'started')
        await progress(0.5, 'half')
        return fencingToken === 1 ? snooze('1h') : input
      },
      {},
      { correlationId: 'c-1' },
    )
    expect(run).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
      elapsedMs: 3_600_000,
      logs: [
        { level: 'info', message: 'started', fields: { step: 1, task: 'test.long', correlationId: 'c-1' } },
        { fields: { step: 1 } },
      ],
      progress: [
        { fraction: 0.5, note: 'half' },
        { fraction: 0.5, note: 'half' },
      ],
    })
  })

  it('a rate limit, whose attempt does not count', async () => {
    const handler = ({ fencingToken, input }: TaskContext<typeof long>) => {
      if (fencingToken === 1) throw rateLimited('30s')
      return input
    }
    const run = await runTask(long, handler, {})
    expect(run).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1, elapsedMs: 30_000 })
    expect(run.attempts).toMatchObject([{ reason: 'rate_limited' }, { state: 'DONE_SUCCESS' }])
  })

  it('the results of steps, which later attempts reuse, also after a crash', async () => {
    const runs: string[] = []
    const run = await runTask(
      long,
      async ({ once, attempt, fencingToken, signal }) => {
        const step = (name: string, n: number) =>
          once(name, (key) => {
            runs.push(key)
            return n
          })
        const n = await step('first', 1)
        if (fencingToken === 1) return untilSignalled({ signal })
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return { n: n + (await step('second', 20)) }
      },
      {},
      { crashAt: '1s' },
    )
    expect(run).toMatchObject({ status: 'completed', output: { n: 21 }, fencingToken: 3, attemptsMade: 2 })
    expect([runs.length, new Set(runs).size]).toEqual([2, 2])
  })

  it('children, each once over all attempts, without running them', async () => {
    const run = await runTask(
      long,
      async ({ enqueue, attempt, input, log, traceContext }) => {
        log.info({ ...traceContext }, 'part of a trace')
        for (const childKey of ['a', 'b']) await enqueue(child, { n: 1 }, { childKey, delay: '1m' })
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
      {},
      { correlationId: 'c-1', traceContext: TRACE },
    )
    expect(run.status).toBe('completed')
    expect(run.logs[0]?.fields).toMatchObject(TRACE)
    expect(run.children).toMatchObject([
      {
        task: 'test.child',
        status: 'scheduled',
        input: { n: 1 },
        correlationId: 'c-1',
        traceContext: TRACE,
        fencingToken: 0,
      },
      { task: 'test.child', status: 'scheduled', traceContext: TRACE },
    ])
  })

  it('no child that a given catalogue lacks: the attempt fails', async () => {
    const handler = async ({ enqueue, input }: TaskContext<typeof long>) => {
      await enqueue(child, { n: 1 })
      return input
    }
    const run = await runTask(long, handler, {}, { catalogue: defineCatalogue(long), maxAttempts: 1 })
    expect(run).toMatchObject({ status: 'dead', errors: [{ code: 'unknown_task' }], children: [] })
  })
})

describe('an option of a run', () => {
  it.each([
    [{ group: { id: GROUP, member: 2 } }, { group: { id: GROUP, member: 2 } }],
    [{ followUpOf: GROUP }, { group: { id: GROUP }, followUpOf: GROUP }],
    [{ followUpOf: TASK }, { followUpOf: TASK }],
    [{}, {}],
  ])('sets what the task belongs to and follows: %j', async (options, read) => {
    const run = await runTask(any, ({ group, followUpOf }) => ({ group, followUpOf }), {}, options)
    expect(run.output).toEqual(read)
    const simulation = await simulate(
      defineHandler(any, import.meta.url, async ({ group, followUpOf, progress }) => {
        await progress(0.5)
        expect({ group, followUpOf }).toEqual({ group: undefined, followUpOf: undefined, ...read })
      }),
      {},
      { ...options, withoutEffects: true },
    )
    expect(simulation.faults).toEqual([])
  })

  it.each([
    [{ group: { id: 'group-1', member: 0 } }, 'group_not_found'],
    [{ followUpOf: 'group-1' }, 'task_not_found'],
  ])('is refused if it is not an id: %j', async (options, code) => {
    await expect(runTask(any, () => {}, {}, options)).rejects.toMatchObject({ code })
  })

  it('cancels the task', async () => {
    expect(await runTask(long, untilSignalled, {}, { cancelAt: '2s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_STOP_SIGNAL'],
      status: 'cancelled',
      cancel: 'cancelling',
      elapsedMs: 2_000,
    })
  })

  it('cancels nothing if no attempt is running, or if the task is short', async () => {
    const between = await runTask(long, ({ input }) => input, {}, { cancelAt: '1s', call: { delay: '2s' } })
    expect(between).toMatchObject({ status: 'completed', cancel: 'not_found' })
    const clock = fakeClock()
    const slow = () => new Promise<{ n: number }>((resolve) => clock.after(2_000, () => resolve({ n: 1 })))
    expect(await runTask(short, slow, {}, { cancelAt: '1s', clock })).toMatchObject({
      status: 'completed',
      cancel: 'not_cancellable',
    })
  })

  it('stops the slot of the task, which another slot starts again if there is one', async () => {
    const stopped = await runTask(long, untilSignalled, {}, { stopAt: '2s' })
    expect(stopped).toMatchObject({ status: 'waiting', attemptsMade: 0, attempts: [{ reason: 'slot_stopped' }] })
    const handler = ({ fencingToken, signal, input }: TaskContext<typeof long>) =>
      fencingToken === 1 ? untilSignalled({ signal }) : input
    expect(await runTask(long, handler, {}, { stopAt: '2s', slots: 2 })).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
    })
  })

  it('drains the pool: the handler may run on, is then signalled, and its task is requeued', async () => {
    expect(await runTask(long, untilSignalled, {}, { drainAt: '2s', drainTimeout: '5s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_CTX_CLOSED'],
      status: 'waiting',
      attemptsMade: 0,
      attempts: [{ reason: 'drain' }],
    })
  })

  it('takes the lock away: that attempt is recorded as lost, and the next one decides', async () => {
    const handler = ({ fencingToken, signal }: TaskContext<typeof long>) =>
      fencingToken === 1 ? untilSignalled({ signal }) : { n: fencingToken }
    const run = await runTask(long, handler, {}, { lockLostAt: '1s' })
    expect(run).toMatchObject({
      status: 'completed',
      output: { n: 2 },
      fencingToken: 2,
      attempts: [{ fencingToken: 1, reason: 'process_lost', counted: false }, { fencingToken: 2 }],
    })
    expect(run.states).toEqual(['NEW', 'IN_PROCESS', 'TERMINATED_CTX_CLOSED', 'NEW', 'IN_PROCESS', 'DONE_SUCCESS'])
  })

  it('kills the worker: the task is recovered some seconds later', async () => {
    const handler = ({ fencingToken, signal }: TaskContext<typeof long>) =>
      fencingToken === 1 ? untilSignalled({ signal }) : { n: fencingToken }
    expect(await runTask(long, handler, {}, { crashAt: '1s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'NEW', 'IN_PROCESS', 'DONE_SUCCESS'],
      status: 'completed',
      attempts: [
        { fencingToken: 1, reason: 'process_lost', worker: 'memory:1' },
        { fencingToken: 2, worker: 'memory:2' },
      ],
      elapsedMs: 7_000,
    })
  })

  it('ends the run while the task is still scheduled', async () => {
    const forever = defineTask({
      name: 'test.forever',
      queue: 'q',
      timeout: 'none',
      heartbeatTimeout: '1h',
      ...schemas,
    })
    const handler = ({ snooze }: TaskContext<typeof forever>) => snooze('1h')
    const run = await runTask(forever, handler, {}, { endAt: '90m' })
    expect(run).toMatchObject({ status: 'scheduled', fencingToken: 2, elapsedMs: 3_600_000 })
  })
})

describe('a handler that waits for something real', () => {
  it('runs in real time with a real clock', async () => {
    const handler = async () => ({ n: (await readFile(import.meta.filename)).length })
    const run = await runTask(long, handler, {}, { clock: 'real' })
    expect(run.output?.n).toBeGreaterThan(1_000)
  })

  it('times out in real time, and the waits between attempts are skipped', async () => {
    const handler = () => new Promise<never>(() => {})
    const call = { timeout: '30ms' } as const
    const quick = defineTask({ name: 'test.quick', queue: 'q', timeout: '30ms', grace: '10ms', ...schemas })
    const run = await runTask(quick, handler, {}, { clock: 'real', maxAttempts: 2, call })
    expect(run.attempts.map(({ reason }) => reason)).toEqual(['run_timeout', 'run_timeout'])
    expect(run.elapsedMs).toBeGreaterThan(1_000)
  })

  it('times out at once on the fake clock, and the message says what to do', async () => {
    const handler = async () => ({ n: (await readFile(import.meta.filename)).length })
    const run = await runTask(long, handler, {}, { maxAttempts: 1 })
    expect(run.attempts[0]?.message).toMatch(/the run timeout of 5m expired on the fake clock; .*pass clock: 'real'$/)
    expect(run.summary).toContain("pass clock: 'real'")
  })

  it('is waited for on a fake clock as well, if no timeout is set', async () => {
    const handler = async () => ({ n: (await readFile(import.meta.filename)).length })
    expect(await runTask(short, handler, {})).toMatchObject({ status: 'completed', elapsedMs: 0 })
  })

  it('works beside fake timers of the test runner', async () => {
    vi.useFakeTimers()
    try {
      expect(await runTask(long, untilSignalled, {}, { maxAttempts: 1 })).toMatchObject({ status: 'dead' })
    } finally {
      vi.useRealTimers()
    }
  })
})
