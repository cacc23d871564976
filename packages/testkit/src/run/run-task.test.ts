import { readFile } from 'node:fs/promises'
import { defineCatalogue, defineHandler, defineTask, rateLimited, type TaskContext, TaskError } from '@bullpen/contract'
import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { runTask } from './run-task.ts'

const schemas = { input: z.object({ n: z.int().default(7) }), output: z.object({ n: z.int() }) }
const short = defineTask({ name: 'test.short', queue: 'q', kind: 'short', ...schemas })
const long = defineTask({ name: 'test.long', queue: 'q', timeout: '5m', grace: '10s', ...schemas })
const isolated = defineTask({ name: 'test.isolated', queue: 'q', isolation: 'process', ...schemas })
const child = defineTask({ name: 'test.child', queue: 'q', ...schemas })

/** Runs until it is told to end. */
const untilSignalled = ({ signal }: { signal: AbortSignal }) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('a run', () => {
  it.each([short, long])('of $name goes through its states to its output', async (definition) => {
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

  it('takes what defineHandler made, with resources of the type that it asks for', async () => {
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

  it('tries again as the definition says, waiting its backoff in no time', async () => {
    const began = performance.now()
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
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  it('ends dead when its attempts are used up, with what was thrown', async () => {
    const broken = new Error('broken')
    const handler = () => {
      throw broken
    }
    expect(await runTask(short, handler, {}, { attempts: 2 })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'RECOVER_ERR', 'NEW', 'IN_PROCESS', 'RECOVER_ERR'],
      status: 'dead',
      errors: [broken, broken],
      output: undefined,
    })
  })

  it('times out after five minutes, in no time', async () => {
    const run = await runTask(long, untilSignalled, {}, { attempts: 1 })
    expect(run).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_TIMEOUT'],
      attempts: [{ reason: 'run_timeout' }],
      elapsedMs: 300_000,
    })
  })

  it('tells of a handler that came back too late, and by how much', async () => {
    const clock = fakeClock()
    const handler = () => new Promise<{ n: number }>((resolve) => clock.after(400_000, () => resolve({ n: 1 })))
    expect(await runTask(long, handler, {}, { attempts: 1, clock })).toMatchObject({
      status: 'dead',
      late: [{ start: 1, overrunMs: 100_000 }],
      elapsedMs: 310_000,
    })
  })

  it('expires unstarted, when nobody takes it within its queue timeout', async () => {
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

  it('ends what can not be read as a worker would', async () => {
    const wrong = { n: 'seven' } as unknown as { n: number }
    expect(await runTask(long, untilSignalled, wrong)).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'DONE_ERROR'],
      status: 'dead',
      attempts: [{ code: 'invalid_input' }],
    })
  })

  it('stores as JSON does: what that drops or changes is dropped and changed here', async () => {
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

describe('what a handler does meanwhile is told:', () => {
  it('its log, its progress, its snooze', async () => {
    const run = await runTask(
      long,
      async ({ input, log, progress, snooze, start }) => {
        log.info({ start }, 'begun')
        await progress(0.5, 'half')
        return start === 1 ? snooze('1h') : input
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
        { level: 'info', message: 'begun', fields: { start: 1, task: 'test.long', correlationId: 'c-1' } },
        { fields: { start: 2 } },
      ],
      progress: [
        { fraction: 0.5, note: 'half' },
        { fraction: 0.5, note: 'half' },
      ],
    })
  })

  it('its wish that its queue be held', async () => {
    const handler = ({ start, input }: TaskContext<typeof long>) => {
      if (start === 1) throw rateLimited('30s')
      return input
    }
    const run = await runTask(long, handler, {})
    expect(run).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1, elapsedMs: 30_000 })
    expect(run.attempts).toMatchObject([{ reason: 'rate_limited' }, { state: 'DONE_SUCCESS' }])
  })

  it('what a step gave in an earlier start, also one whose process has died', async () => {
    const runs: string[] = []
    const run = await runTask(
      long,
      async ({ once, attempt, start, signal }) => {
        const step = (name: string, n: number) =>
          once(name, (key) => {
            runs.push(key)
            return n
          })
        const n = await step('first', 1)
        if (start === 1) return untilSignalled({ signal })
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return { n: n + (await step('second', 20)) }
      },
      {},
      { crashAt: '1s' },
    )
    expect(run).toMatchObject({ status: 'completed', output: { n: 21 }, fencingToken: 3, attemptsMade: 2 })
    expect([runs.length, new Set(runs).size]).toEqual([2, 2])
  })

  it('what it enqueued, each once, over all attempts; none of it is run', async () => {
    const run = await runTask(
      long,
      async ({ enqueue, attempt, input }) => {
        for (const key of ['a', 'b']) await enqueue(child, { n: 1 }, { key, delay: '1m' })
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return input
      },
      {},
      { correlationId: 'c-1' },
    )
    expect(run.status).toBe('completed')
    expect(run.children).toMatchObject([
      { task: 'test.child', status: 'scheduled', input: { n: 1 }, correlationId: 'c-1', fencingToken: 0 },
      { task: 'test.child', status: 'scheduled' },
    ])
  })

  it('a child that the worker’s catalogue lacks is refused, where the test gives the catalogue', async () => {
    const handler = async ({ enqueue, input }: TaskContext<typeof long>) => {
      await enqueue(child, { n: 1 })
      return input
    }
    const run = await runTask(long, handler, {}, { catalogue: defineCatalogue(long), attempts: 1 })
    expect(run).toMatchObject({ status: 'dead', errors: [{ code: 'unknown_task' }], children: [] })
  })
})

describe('from outside, a run can be', () => {
  it('cancelled', async () => {
    expect(await runTask(long, untilSignalled, {}, { cancelAt: '2s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_STOP_SIGNAL'],
      status: 'cancelled',
      cancel: 'cancelling',
      elapsedMs: 2_000,
    })
  })

  it('cancelled in vain, when nothing runs or what runs is short', async () => {
    const between = await runTask(long, ({ input }) => input, {}, { cancelAt: '1s', call: { delay: '2s' } })
    expect(between).toMatchObject({ status: 'completed', cancel: 'not_found' })
    const clock = fakeClock()
    const slow = () => new Promise<{ n: number }>((resolve) => clock.after(2_000, () => resolve({ n: 1 })))
    expect(await runTask(short, slow, {}, { cancelAt: '1s', clock })).toMatchObject({
      status: 'completed',
      cancel: 'not_cancellable',
    })
  })

  it('stopped with its worker, and taken by another where there is one', async () => {
    const stopped = await runTask(long, untilSignalled, {}, { stopAt: '2s' })
    expect(stopped).toMatchObject({ status: 'waiting', attemptsMade: 0, attempts: [{ reason: 'slot_stopped' }] })
    const handler = ({ start, signal, input }: TaskContext<typeof long>) =>
      start === 1 ? untilSignalled({ signal }) : input
    expect(await runTask(long, handler, {}, { stopAt: '2s', workers: 2 })).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
    })
  })

  it('drained: it may go on, then is signalled, and goes back to its queue', async () => {
    expect(await runTask(long, untilSignalled, {}, { drainAt: '2s', drainTimeout: '5s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'TERMINATED_CTX_CLOSED'],
      status: 'waiting',
      attemptsMade: 0,
      attempts: [{ reason: 'drain' }],
    })
  })

  it('robbed of its lock: nothing of that start is recorded, and another one decides', async () => {
    const handler = ({ start, signal }: TaskContext<typeof long>) =>
      start === 1 ? untilSignalled({ signal }) : { n: start }
    const run = await runTask(long, handler, {}, { lockLostAt: '1s' })
    expect(run).toMatchObject({
      status: 'completed',
      output: { n: 2 },
      fencingToken: 2,
      attempts: [{ fencingToken: 2 }],
    })
    expect(run.states).toEqual(['NEW', 'IN_PROCESS', 'TERMINATED_CTX_CLOSED', 'NEW', 'IN_PROCESS', 'DONE_SUCCESS'])
  })

  it('left by its process, which died: found some seconds later, nothing recorded of what was before', async () => {
    const handler = ({ start, signal }: TaskContext<typeof long>) =>
      start === 1 ? untilSignalled({ signal }) : { n: start }
    expect(await runTask(long, handler, {}, { crashAt: '1s' })).toMatchObject({
      states: ['NEW', 'IN_PROCESS', 'NEW', 'IN_PROCESS', 'DONE_SUCCESS'],
      status: 'completed',
      attempts: [{ fencingToken: 2, worker: 'memory:2' }],
      elapsedMs: 7_000,
    })
  })

  it('left as it stands at its limit', async () => {
    const forever = defineTask({
      name: 'test.forever',
      queue: 'q',
      timeout: 'none',
      heartbeatTimeout: '1h',
      ...schemas,
    })
    const handler = ({ snooze }: TaskContext<typeof forever>) => snooze('1h')
    const run = await runTask(forever, handler, {}, { limit: '90m' })
    expect(run).toMatchObject({ status: 'scheduled', fencingToken: 2, elapsedMs: 3_600_000 })
  })
})

describe('a handler that waits for something real', () => {
  it('is given real time, with a real clock', async () => {
    const handler = async () => ({ n: (await readFile(import.meta.filename)).length })
    const run = await runTask(long, handler, {}, { clock: 'real' })
    expect(run.output?.n).toBeGreaterThan(1_000)
  })

  it('times out in real time, while waits between attempts are skipped', async () => {
    const handler = () => new Promise<never>(() => {})
    const began = performance.now()
    const call = { timeout: '30ms' } as const
    const quick = defineTask({ name: 'test.quick', queue: 'q', timeout: '30ms', grace: '10ms', ...schemas })
    const run = await runTask(quick, handler, {}, { clock: 'real', attempts: 2, call })
    expect(run.attempts.map(({ reason }) => reason)).toEqual(['run_timeout', 'run_timeout'])
    expect(run.elapsedMs).toBeGreaterThan(1_000)
    expect(performance.now() - began).toBeLessThan(900)
  })

  it('is waited for by a fake clock, too, where that has nothing else to do', async () => {
    const handler = async () => ({ n: (await readFile(import.meta.filename)).length })
    expect(await runTask(short, handler, {})).toMatchObject({ status: 'completed', elapsedMs: 0 })
  })

  it('works beside the timers that a test has faked', async () => {
    vi.useFakeTimers()
    try {
      expect(await runTask(long, untilSignalled, {}, { attempts: 1 })).toMatchObject({ status: 'dead' })
    } finally {
      vi.useRealTimers()
    }
  })
})
