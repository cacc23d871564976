import type { TaskContext } from '@bullpen/contract'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { sha256 } from '../node/index.ts'
import { type Handle, soloist } from '../pool/pool.fixture.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import { stepsInMemory } from './steps.fixture.ts'
import { stepKey } from './steps.ts'

/** One task, started as often as its handler is called, with what it kept before. */
function world(handle: Handle) {
  const store = stepsInMemory()
  const solo = soloist({ handle })
  const { id } = solo.taken('test.long')
  let start = 0
  const run = (kind: 'short' | 'long' = 'long', given: Partial<FetchedTask> = {}) =>
    solo.run(`test.${kind}`, {}, { id, fencingToken: ++start, steps: store.steps, ...given })
  return { ...solo, store, id, begin: run }
}

const circular: { self?: unknown } = {}
circular.self = circular

const codeOf = (error: unknown) => (error as { readonly code?: string }).code

describe('a step', () => {
  it.each(['short', 'long'] as const)(
    'of a %s task runs in one start, and its result is there in all',
    async (kind) => {
      const runs: string[] = []
      const results: unknown[] = []
      const { begin, store, id } = world(async ({ once }) => {
        results.push(
          await once('pay', (key) => {
            runs.push(key)
            return { at: new Date(0), gone: undefined, n: runs.length }
          }),
        )
        return { n: 1 }
      })
      for (let start = 1; start <= 3; start++) await begin(kind)
      expect(runs).toEqual([stepKey(id, 'pay', sha256)])
      // As JSON tells it, the first time too.
      expect(results).toEqual(Array.from({ length: 3 }, () => ({ at: '1970-01-01T00:00:00.000Z', n: 1 })))
      expect(store.calls).toEqual(['keep pay', 'read', 'read'])
    },
  )

  it('has a key that fits a header, the same on every machine, and another for every other task and step', () => {
    const id = 'q-00000000010000000000000000' as never
    const keys = ['a', 'b', 'ä\n'].map((step) => stepKey(id, step, sha256))
    expect(keys[0]).toBe('4050ee96864d36ebd1c4fc433fd36e62')
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set([...keys, stepKey(`${id}a` as never, '', sha256)]).size).toBe(4)
  })

  it('that throws is not kept, and runs again', async () => {
    const runs: number[] = []
    const { begin, store } = world(async ({ once, fencingToken }) => {
      const step = () => {
        runs.push(fencingToken)
        if (runs.length < 3) throw new Error('no')
        return fencingToken
      }
      await once('pay', step).catch(() => {})
      return { n: await once('pay', step) }
    })
    expect((await begin()).record.state).toBe('RECOVER_ERR')
    expect((await begin()).verdict).toEqual({ kind: 'completed', output: { n: 2 } })
    expect(runs).toEqual([1, 1, 2])
    expect([...store.kept]).toEqual([['pay', '2']])
  })

  it('that is called twice at the same time runs once, for both; what one does to the result the other does not see', async () => {
    const open = Promise.withResolvers<{ n: number }>()
    let runs = 0
    const { begin, store } = world(async ({ once }) => {
      const pay = () => {
        runs++
        return open.promise
      }
      const both = [once('pay', pay), once('pay', pay)] as const
      open.resolve({ n: 7 })
      const [one, other] = await Promise.all(both)
      one.n = 8
      return { n: other.n + (await once('pay', pay)).n }
    })
    expect((await begin()).verdict).toMatchObject({ output: { n: 14 } })
    expect([runs, store.calls]).toEqual([1, ['keep pay']])
  })

  it('is done once though its result could not be kept at first', async () => {
    let runs = 0
    const store = stepsInMemory()
    let away = true
    const keep: FetchedTask['steps']['keep'] = async (...given) => {
      if (away) throw new Error('the store is away')
      return store.steps.keep(...given)
    }
    const { begin } = world(async ({ once }) => {
      const pay = () => ++runs
      await once('pay', pay).catch(() => {})
      away = false
      return { n: await once('pay', pay) }
    })
    const { verdict } = await begin('long', { steps: { ...store.steps, keep } })
    expect(verdict).toMatchObject({ output: { n: 1 } })
    expect([...store.kept]).toEqual([['pay', '1']])
  })

  it('is looked for again after a read that failed', async () => {
    const { steps } = stepsInMemory()
    let reads = 0
    const read: FetchedTask['steps']['read'] = async () => {
      if (++reads === 1) throw new Error('the store is away')
      return new Map([['pay', '5']])
    }
    const { begin } = world(async ({ once }) => {
      await once('pay', () => 1).catch(() => {})
      return { n: await once('pay', () => 2) }
    })
    expect((await begin('long', { fencingToken: 2, steps: { ...steps, read } })).verdict).toMatchObject({
      output: { n: 5 },
    })
  })

  it.each([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a cycle', circular],
    ['a bigint', 1n],
    ['too large', 'x'.repeat(1_000)],
  ])('whose result is %s is refused: invalid_result', async (_, result) => {
    const { begin, store } = world(async ({ once }) => {
      const error = await once('pay', () => result as string).catch((thrown) => thrown)
      expect([error.name, codeOf(error)]).toEqual(['BullpenError', 'invalid_result'])
      return { n: 1 }
    })
    expect((await begin()).record.state).toBe('DONE_SUCCESS')
    expect(store.kept.size).toBe(0)
  })

  it.each(['', 'x'.repeat(129), 7 as never, 'x\ud800', 'a\0', 'a\nb', '\u202e'])(
    'has no name such as %j',
    async (step) => {
      const { begin } = world(async ({ once }) => {
        await expect(once(step, () => 1)).rejects.toMatchObject({
          code: 'invalid_request',
          errors: [{ parameter: 'step' }],
        })
        return { n: await once('x'.repeat(128), () => 1) }
      })
      expect((await begin()).record.state).toBe('DONE_SUCCESS')
    },
  )

  it('is typed by its run, which may not return nothing', () => {
    const { once } = {} as TaskContext
    expectTypeOf<ReturnType<typeof once<{ n: number } | null>>>().toEqualTypeOf<Promise<{ n: number } | null>>()
    // @ts-expect-error: there is nothing to keep.
    const nothing = () => once('pay', async () => {})
    expectTypeOf(nothing).toBeFunction()
  })
})

describe('a step and the end of its attempt:', () => {
  it('may still be done and kept within the grace of an interruption', async () => {
    const { begin, slot, store } = world(async ({ once, signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { n: await once('undo', () => 3) }
    })
    const ended = begin()
    slot.interruption?.stop({ reason: 'cancelled' })
    expect((await ended).verdict.kind).toBe('cancelled')
    expect([...store.kept]).toEqual([['undo', '3']])
  })

  it('starts no more steps after its end, and stores a started one unless another attempt has the task', async () => {
    const paid = Promise.withResolvers<number>()
    const said: unknown[] = []
    const { begin, clock, store } = world(async ({ once }) => {
      said.push(await once('pay', () => paid.promise))
      await once('mail', () => 1).catch((error) => said.push(codeOf(error)))
      return { n: 1 }
    })
    const ended = begin()
    await clock.advance(150)
    expect((await ended).record.reason).toBe('run_timeout')
    paid.resolve(4)
    await clock.advance(0)
    expect(said).toEqual([4, 'wrong_state'])
    expect([...store.kept]).toEqual([['pay', '4']])
  })

  it('is not kept by a start that has lost its lock, which ends as that whatever its handler does', async () => {
    const { begin, store } = world(async ({ once }) => {
      store.loseLock()
      await expect(once('pay', () => 1)).rejects.toMatchObject({ code: 'lock_lost' })
      return { n: 1 }
    })
    expect(await begin()).toMatchObject({
      record: { state: 'TERMINATED_CTX_CLOSED', reason: 'lock_lost' },
      verdict: { kind: 'lost' },
    })
    expect(store.kept.size).toBe(0)
  })

  it('takes the result that another start kept first', async () => {
    const { begin, store } = world(async ({ once }) => {
      return { n: await once('pay', () => Number(store.kept.set('pay', '9').size)) }
    })
    expect((await begin()).verdict).toMatchObject({ output: { n: 9 } })
  })
})
