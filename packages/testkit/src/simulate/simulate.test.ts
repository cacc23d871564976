import { defineHandler, defineTask, type TaskContext, TaskError } from '@bullpen/contract'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { realTime } from '../real-time.ts'
import { type EffectOptions, effect, effects } from './effect.ts'
import { type SimulatedWorld, type SimulateOptions, simulate } from './simulate.ts'

const definition = {
  queue: 'orders',
  input: z.object({ to: z.string().default('ann') }),
  output: z.unknown(),
} as const
const order = defineTask({ name: 'order.confirm', ...definition })

interface Resources {
  readonly api: { post(text: string, key?: string, signal?: AbortSignal): Promise<string> }
}

type Context = TaskContext<typeof order, Resources>
type Handle = (context: Context) => unknown

/** A system outside that carries out every call, unless the options say otherwise. */
const api = (options?: EffectOptions<[text: string, key?: string, signal?: AbortSignal]>) => () => ({
  api: { post: effect(async (text: string, _key?: string, _signal?: AbortSignal) => `posted ${text}`, options) },
})

const byKey = { deduplicatedBy: (_text: string, key?: string) => key }

const handlerOf = (handle: Handle, task = order) => defineHandler(task, import.meta.url, handle)

const run = (handle: Handle, options: Partial<SimulateOptions<Resources>> = {}, task = order) =>
  simulate(handlerOf(handle, task), {}, { resources: api(), ...options })

/** Returns the interruptions that show the first fault, as `kind phase call`. */
const causes = ({ faults: [fault] }: Awaited<ReturnType<typeof simulate>>) =>
  fault?.runs.map(({ interruptions }) =>
    interruptions.map(({ kind, phase, call }) => `${kind} ${phase} ${call}`).join(', '),
  )

const post: Handle = ({ input, resources }) => resources.api.post(input.to)

describe('simulate', () => {
  it('interrupts an attempt before and after each registration of a follow-up, and counts those that follow', async () => {
    const found = await run(async (context) => {
      await context.onFailure(order, {})
      await context.onEnd(order, {})
      return post(context)
    })
    expect(found.points).toBe(4 + 3)
    expect(found.effects).toEqual([
      { effect: 'api.post("ann")', times: 1 },
      { effect: 'follow-up "order.confirm"', times: 1 },
    ])
  })

  it('interrupts an attempt before and after each awaited call, and when the handler has returned', async () => {
    const found = await run(post)
    expect(found).toMatchObject({
      task: 'order.confirm',
      points: 3,
      runs: 2 + 4 + 4 + 2,
      effects: [{ effect: 'api.post("ann")', times: 1 }],
      faults: [{ kind: 'repeated', effect: 'api.post("ann")', expected: 1 }],
    })
    expect(causes(found)).toEqual([
      'timeout before api.post',
      'lock_lost before api.post',
      'crash after api.post',
      'timeout after api.post',
      'lock_lost after api.post',
      'crash returned undefined',
      'lock_lost returned undefined',
    ])
  })

  it('reports the same result each time', async () => {
    const [first, second] = [await run(post), await run(post)]
    expect(JSON.stringify(first)).toBe(JSON.stringify(second))
  })

  it('interrupts ctx.once before, in and after its step, and keeps the results that were stored', async () => {
    const found = await run(
      async ({ input, once, progress, resources }) => {
        await progress(0.5)
        const posted = await once('post', (key) => resources.api.post(input.to, key))
        return resources.api.post(posted, 'the second call')
      },
      { resources: api(byKey) },
    )
    // The second call has the same argument in each run only if the first one's result was stored.
    expect(found.effects).toEqual([
      { effect: 'api.post("ann", <idempotency key>)', times: 1 },
      { effect: 'api.post("posted ann", <idempotency key>)', times: 1 },
    ])
    expect(found).toMatchObject({ points: 2 + 5 + 2 + 1, faults: [] })
  })

  it('reports a step whose effect the receiving system cannot recognise, unless the test accepts its repetition', async () => {
    const handle: Handle = ({ input, once, resources }) => once('post', () => resources.api.post(input.to))
    const found = await run(handle)
    expect(causes(found)).toEqual([
      'lock_lost before api.post',
      'crash after api.post',
      'lock_lost after api.post',
      'crash unrecorded ctx.once("post")',
      'lock_lost unrecorded ctx.once("post")',
    ])
    const accepted = await run(handle, { resources: api({ unrecordedRepeat: 'accepted' }) })
    expect(accepted.faults).toEqual([])
  })

  it('does not accept the repetition of an effect whose step was stored', async () => {
    const handle: Handle = ({ fencingToken, input, once, resources }) =>
      once(`post ${fencingToken}`, () => resources.api.post(input.to))
    const found = await run(handle, { resources: api({ unrecordedRepeat: 'accepted' }), kinds: ['crash'] })
    expect(causes(found)).toEqual(['crash recorded ctx.once("post 1")', 'crash returned undefined'])
  })

  it('does not accept the repetition of an effect outside ctx.once', async () => {
    const found = await run(post, { resources: api({ unrecordedRepeat: 'accepted' }) })
    expect(found.faults).toMatchObject([{ kind: 'repeated' }])
  })

  it('finds a fault that needs two interruptions only if it interrupts pairs', async () => {
    const handle: Handle = ({ fencingToken, input, resources }) =>
      resources.api.post(input.to, fencingToken < 3 ? 'a key' : 'another key')
    const options = { resources: api(byKey), kinds: ['crash'] } as const
    expect((await run(handle, options)).faults).toEqual([])
    const found = await run(handle, { ...options, pairs: true })
    expect(causes(found)).toEqual([
      'crash before api.post, crash after api.post',
      'crash before api.post, crash returned undefined',
      'crash after api.post, crash before api.post',
      'crash after api.post, crash after api.post',
      'crash after api.post, crash returned undefined',
      'crash returned undefined, crash before api.post',
      'crash returned undefined, crash after api.post',
      'crash returned undefined, crash returned undefined',
    ])
    expect(found.runs).toBe(2 + 3 + 9)
  })

  it('lists a fault that one interruption causes alone only once', async () => {
    const [single, pairs] = [await run(post), await run(post, { pairs: true })]
    expect(causes(pairs)?.filter((cause) => !cause.includes(','))).toEqual(causes(single))
    const second = causes(pairs)?.filter((cause) => cause.includes(','))
    expect(second).toEqual([])
  })

  it('reports a task that does not complete after an interruption', async () => {
    const files = () => {
      const existing = new Set<string>()
      const create = effect(
        async (path: string) => {
          if (existing.has(path)) throw new TaskError('exists', `${path} exists`, { retryable: false })
          existing.add(path)
          return path
        },
        { deduplicatedBy: 'arguments' },
      )
      return { api: { post: create } }
    }
    const found = await run(post, { resources: files, kinds: ['crash'] })
    expect(found.faults).toMatchObject([{ kind: 'not_completed', effect: undefined }])
    expect(found.summary).toContain('the task did not complete when the attempt was interrupted\n  after api.post')
    expect(found.summary).toContain('exists: ann exists')
  })

  it('cuts a dead attempt off, whatever its handler does', async () => {
    const late: string[] = []
    const handle: Handle = async ({ fencingToken, resources, progress }) => {
      try {
        await Promise.all([resources.api.post('a', 'a'), resources.api.post('b', 'b')])
      } finally {
        await progress(1)
        if (fencingToken === 1) late.push(await resources.api.post('cleaned up', 'c'))
      }
    }
    const found = await run(handle, { resources: api(byKey), kinds: ['crash'] })
    // The first attempt cleans up in the two uninterrupted runs, and in those that it survived until then.
    expect(found.faults).toMatchObject([{ kind: 'missing', effect: 'api.post("cleaned up", <idempotency key>)' }])
    expect(late.length).toBe(2 + 1)
  })

  it('keeps a dead attempt from repeating its calls', async () => {
    const task = defineTask({ name: 'row.insert', queue: 'rows', input: z.object({}) })
    const resources = () => ({
      ...api(byKey)(),
      db: { insert: effect((_row: string) => {}, { deduplicatedBy: 'arguments' }) },
    })
    let repeats = 0
    type Context = TaskContext<typeof task, ReturnType<typeof resources>>
    const handler = defineHandler(task, import.meta.url, async ({ resources: { db, api } }: Context) => {
      await api.post('a', 'a')
      try {
        db.insert('a')
      } catch {
        for (let tries = 0; tries < 5; tries++) {
          try {
            await api.post('failed', 'b')
          } catch {
            repeats++
          }
        }
      }
    })
    expect((await simulate(handler, {}, { resources })).faults).toEqual([])
    expect(repeats).toBe(0)
  })

  it('interrupts an effect that is not awaited only by a crash', async () => {
    const task = defineTask({ name: 'row.insert', queue: 'rows', input: z.object({}) })
    const resources = () => ({ db: { rows: 0, insert: effect((_row: string) => {}) } })
    type Db = ReturnType<typeof resources>
    const handler = defineHandler(task, import.meta.url, (context: TaskContext<typeof task, Db>) => {
      for (const row of ['a', 'b']) {
        try {
          context.resources.db.insert(row)
        } catch {
          context.resources.db.insert('cleaned up')
        }
      }
    })
    const found = await simulate(handler, {}, { resources })
    expect(found.runs).toBe(2 + 4 + 2)
    expect(found.faults).toMatchObject([{ effect: 'db.insert("a")' }, { effect: 'db.insert("b")' }])
    expect(causes(found)).toEqual([
      'crash after db.insert',
      'crash before db.insert',
      'crash after db.insert',
      'crash returned undefined',
      'lock_lost returned undefined',
    ])
  })

  it('counts the effects of an object that a resource returns, and those of middleware', async () => {
    const task = defineTask({ name: 'row.insert', queue: 'rows', input: z.object({}) })
    const resources = () => {
      const insert = effect(async (_row: string) => {}, { name: 'insert', deduplicatedBy: 'arguments' })
      const audit = effect(async (_line: string) => {})
      return Object.freeze({ db: { begin: async () => ({ insert }) }, log: { audit } })
    }
    type Db = ReturnType<typeof resources>
    const handler = defineHandler(task, import.meta.url, async (context: TaskContext<typeof task, Db>) => {
      const transaction = await context.resources.db.begin()
      await transaction.insert('a')
    })
    const found = await simulate(
      handler,
      {},
      {
        resources,
        middleware: [
          async (context, next) => {
            await context.resources.log.audit('began')
            return next()
          },
        ],
      },
    )
    expect(found.effects).toEqual([
      { effect: 'log.audit("began")', times: 1 },
      { effect: 'insert("a")', times: 1 },
    ])
    expect(found.faults).toMatchObject([{ kind: 'repeated', effect: 'log.audit("began")' }])
  })

  it('interrupts a short task by a crash, a drain or a lost lock', async () => {
    const short = defineTask({ name: 'order.count', kind: 'short', ...definition })
    const handler = defineHandler(
      short,
      import.meta.url,
      ({ input, resources }: TaskContext<typeof short, Resources>) => resources.api.post(input.to),
    )
    const found = await simulate(handler, {}, { resources: api() })
    expect(causes(found)).toEqual([
      'lock_lost before api.post',
      'crash after api.post',
      'lock_lost after api.post',
      'crash returned undefined',
      'lock_lost returned undefined',
    ])
    expect(found.runs).toBe(2 + 3 + 3 + 2)
    const recognised = { resources: api({ deduplicatedBy: 'arguments' }), pairs: true } as const
    expect((await simulate(handler, {}, recognised)).faults).toEqual([])
  })

  it('does not interrupt an attempt once the next one has started, nor one that has lost its lock', async () => {
    const slowAtFirst = ({ clock }: SimulatedWorld) => {
      let calls = 0
      const send = (text: string, ms: number) =>
        new Promise<string>((resolve) => clock.after(ms, () => resolve(`posted ${text}`)))
      const post = effect((text: string) => send(text, ++calls === 1 ? 3_600_000 : 0), { deduplicatedBy: 'arguments' })
      return { api: { post } }
    }
    // The first attempt times out, and its call returns an hour later.
    const found = await run(post, { resources: slowAtFirst })
    expect(found).toMatchObject({ points: 1 + 3, faults: [] })

    const cleaningUp: Handle = async ({ input, resources, signal }) => {
      try {
        return await resources.api.post(input.to, 'key', signal)
      } catch (error) {
        await resources.api.post('failed', 'another key')
        throw error
      }
    }
    const options = { resources: api(byKey), kinds: ['lock_lost'], pairs: true } as const
    // Each of the 3 points is followed by the 3 points of the next attempt.
    expect((await run(cleaningUp, options)).runs).toBe(2 + 3 + 3 * 3)
  })

  it('leaves out interruptions after which the task would not run again', async () => {
    const careful = defineTask({
      name: 'order.confirm',
      ...definition,
      onInterrupt: 'fail',
      retry: { maxAttempts: 1 },
    })
    const withSignal: Handle = ({ input, signal, resources }) => resources.api.post(input.to, undefined, signal)
    const found = await run(withSignal, {}, careful as typeof order)
    expect(found.runs).toBe(2 + 2 + 2 + 2)
    expect(new Set(causes(found)?.map((cause) => cause.split(' ')[0]))).toEqual(new Set(['crash', 'lock_lost']))
    expect(found.faults).toHaveLength(1)
  })

  it('ignores the total timeout and the number of attempts of the definition', async () => {
    const brief = defineTask({
      name: 'order.confirm',
      ...definition,
      timeout: '1s',
      totalTimeout: '2s',
      retry: { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '10s' } },
    })
    const found = await run(
      post,
      { resources: api({ deduplicatedBy: 'arguments' }), pairs: true },
      brief as typeof order,
    )
    expect(found.faults).toEqual([])
  })

  it('follows a task through the attempts that its handler ends itself', async () => {
    const found = await run(
      async ({ attempt, id, input, resources, snooze, fencingToken }) => {
        if (fencingToken === 1) snooze('1m')
        await resources.api.post(input.to, id)
        if (attempt < 3) throw new TaskError('busy', 'not now')
        return 'done'
      },
      { resources: api(byKey) },
    )
    expect(found.effects).toEqual([{ effect: 'api.post("ann", <idempotency key>)', times: 1 }])
    expect(found.points).toBe(3 * 2 + 1)
    expect(found.faults).toEqual([])
  })

  it('runs a handler that waits for real time', async () => {
    const handle: Handle = async ({ id, input, resources }) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      return resources.api.post(input.to, id)
    }
    expect(await run(handle, { resources: api(byKey), clock: 'real' })).toMatchObject({ runs: 12, faults: [] })
  })

  it('passes the clock of the run to its resources', async () => {
    const found = await run(({ input, resources }) => resources.api.post(input.to, 'key'), {
      resources: ({ clock }) => ({
        api: {
          post: effect(
            (text: string, _key?: string) =>
              new Promise<string>((resolve) => clock.after(60_000, () => resolve(`posted ${text}`))),
            byKey,
          ),
        },
      }),
    })
    expect(found.faults).toEqual([])
  })

  it('reports at which line the interrupted call was made', async () => {
    const found = await run(async ({ input, resources }) => {
      await resources.api.post(input.to)
    })
    const [location] = found.faults.flatMap(({ runs }) =>
      runs.flatMap(({ interruptions }) => interruptions[0]?.location),
    )
    expect(location).toMatch(/^packages\/testkit\/src\/simulate\/simulate\.test\.ts:\d+:\d+$/)
    expect(found.summary).toContain(`before api.post (${location}) by a timeout or a lost lock`)
  })
})

describe('assertIdempotent', () => {
  it('throws the report and the faults', async () => {
    const found = await run(post)
    expect(() => found.assertIdempotent()).toThrow(
      expect.objectContaining({
        name: 'SimulationError',
        code: 'not_idempotent',
        message: found.summary,
        faults: found.faults,
      }),
    )
    expect(found.summary.split('\n').slice(0, 3)).toEqual([
      'order.confirm is not idempotent: 1 fault in 12 runs',
      '',
      'api.post("ann") should happen once, but happened 2 times when the attempt was interrupted',
    ])
  })

  it('does nothing if there are no faults', async () => {
    const found = await run(post, { resources: api({ deduplicatedBy: 'arguments' }) })
    found.assertIdempotent()
    expect(found.summary).toBe('order.confirm is idempotent: no fault in 12 runs, with 3 interruption points')
  })
})

describe('simulate rejects', () => {
  const failure = (code: string, message: string) => ({
    name: 'SimulationError',
    code,
    message: expect.stringContaining(message),
  })

  it('a handler that fails without an interruption, with the error as the cause', async () => {
    const broken = new Error('broken')
    const handle: Handle = async ({ resources }) => {
      await resources.api.post('a')
      throw broken
    }
    await expect(run(handle)).rejects.toMatchObject({
      ...failure('never_completes', 'the last interruption point was after api.post had taken effect'),
      cause: broken,
    })
  })

  it('a handler that waits for real time on the fake clock, and says which option helps', async () => {
    const timers: NodeJS.Timeout[] = []
    const handle: Handle = () => new Promise((resolve) => timers.push(setTimeout(resolve, 3_600_000)))
    await expect(run(handle)).rejects.toMatchObject(failure('never_completes', "pass clock: 'real'"))
    for (const timer of timers) clearTimeout(timer)
  })

  it('a handler that does not end, with the interruption after which it does not', async () => {
    let now = 0
    vi.spyOn(realTime, 'now').mockImplementation(() => (now += 1_000))
    const patient = defineTask({ name: 'order.confirm', ...definition, timeout: 'none' }) as typeof order
    const hanging = (token: number): Handle => {
      return ({ fencingToken, input, resources }) =>
        fencingToken === token ? new Promise(() => {}) : resources.api.post(input.to)
    }
    try {
      await expect(run(hanging(1), {}, patient)).rejects.toMatchObject(
        failure('never_completes', 'order.confirm does not end: the handler is still running after'),
      )
      await expect(run(hanging(2), {}, patient)).rejects.toMatchObject({
        code: 'never_completes',
        message: expect.stringMatching(
          /^order\.confirm does not end when it is interrupted before api\.post \(.+\) by a crash: the handler is still/,
        ),
      })
    } finally {
      vi.restoreAllMocks()
    }
  })

  it('a handler without effects, and says what it calls', async () => {
    await expect(run(() => 1)).rejects.toMatchObject(
      failure('no_effects', 'awaits nothing on its context or its resources'),
    )
    const unmarked = { resources: () => ({ api: { post: async () => 'posted' } }) }
    await expect(run(post, unmarked)).rejects.toMatchObject(
      failure('no_effects', 'makes 1 call, which is not marked as an effect'),
    )
    expect(await run(post, { ...unmarked, withoutEffects: true })).toMatchObject({ effects: [], faults: [] })
  })

  it('a handler whose effects differ between two runs', async () => {
    const handle: Handle = ({ resources }) => resources.api.post(`at ${Math.random()}`)
    await expect(run(handle)).rejects.toMatchObject(
      failure('non_deterministic', 'happened once in the first run and never in the second'),
    )
    const described = await run(handle, { resources: api({ identity: () => 'a time', deduplicatedBy: () => 'key' }) })
    expect(described).toMatchObject({ effects: [{ effect: 'api.post("a time")', times: 1 }], faults: [] })
  })

  it('a handler whose calls depend on state outside the simulation', async () => {
    let calls = 0
    const handle: Handle = async ({ resources, progress }) => {
      if (++calls > 1) await progress(1)
      return resources.api.post('a')
    }
    await expect(run(handle)).rejects.toMatchObject(
      failure('non_deterministic', 'only one of two runs reached the point before ctx.progress'),
    )
    let runs = 0
    const later: Handle = async ({ resources, progress }) => {
      if (++runs < 5) await progress(1)
      return resources.api.post('a', 'key')
    }
    await expect(run(later, { resources: api(byKey) })).rejects.toMatchObject(
      failure('non_deterministic', 'did not reach this point'),
    )
  })

  it('kinds of interruption after which the task never runs again', async () => {
    await expect(run(post, { kinds: [] })).rejects.toMatchObject(
      failure('no_interruption', '`kinds` is [], and a task'),
    )
  })

  it('more runs than allowed', async () => {
    await expect(run(post, { maxRuns: 11 })).rejects.toMatchObject(
      failure('too_many_runs', 'would take 12 runs for 3 interruption points; the limit is 11'),
    )
    await expect(run(post, { maxRuns: 12, pairs: true })).rejects.toMatchObject(failure('too_many_runs', 'pairs'))
  })

  it('an input that the API would reject', async () => {
    // @ts-expect-error: the input does not match the schema.
    const simulated = simulate(handlerOf(post), { to: 7 }, { resources: api() })
    await expect(simulated).rejects.toMatchObject({ code: 'invalid_input' })
  })
})

describe('effects', () => {
  it('marks methods of an object with private fields', async () => {
    class Bank {
      #balance = 0
      async charge(cents: number) {
        this.#balance += cents
        return this.#balance
      }
    }
    const bank = effects(new Bank(), { charge: {} })
    expect(await bank.charge(5)).toBe(5)
    const task = defineTask({ name: 'card.charge', queue: 'cards', input: z.object({}), output: z.int() })
    const handler = defineHandler(task, import.meta.url, ({ resources }: TaskContext<typeof task, { bank: Bank }>) =>
      resources.bank.charge(7),
    )
    const found = await simulate(handler, {}, { resources: () => ({ bank: effects(new Bank(), { charge: {} }) }) })
    expect(found.faults).toMatchObject([{ kind: 'repeated', effect: 'bank.charge(7)' }])
  })

  it('rejects a name that is not a method', () => {
    // @ts-expect-error: the object does not have this method.
    expect(() => effects({ charge: () => 1 }, { refund: {} })).toThrow('cannot mark refund as an effect')
  })
})
