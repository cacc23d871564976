// Tests that each of a task's steps runs once across all of its attempts.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { type Context, gate, long, openSetup, plain, short } from './setup.ts'

export function steps(open: OpenBackend): void {
  it.each([short, long])(
    'a step of $name runs in one attempt, and every attempt has its result',
    async (definition) => {
      const keys: string[] = []
      const results: unknown[] = []
      const { enqueue, start, settled } = await openSetup(open, {
        handle: async ({ once, attempt, input }) => {
          const pay = (key: string) => {
            keys.push(key)
            return { paid: attempt, of: [null, 1.5, {}, []] }
          }
          results.push(await once('pay: ä', pay))
          if (attempt < 3) throw new TaskError('busy', 'not now')
          results.push(await once('mail', () => null))
          return input
        },
      })
      await start()
      expect(await settled(await enqueue(definition, {}))).toMatchObject({ status: 'completed', attemptsMade: 3 })
      const paid = { paid: 1, of: [null, 1.5, {}, []] }
      expect(results).toEqual([paid, paid, paid, null])
      expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)])
    },
  )

  it('step results are there after a requeue, including those of the grace period', async () => {
    const { handle, holds } = gate()
    const runs: string[] = []
    const { enqueue, start, settled, find } = await openSetup(open, {
      handle: async (context) => {
        const step = (name: string) =>
          context.once(name, () => {
            runs.push(`${name} ${context.fencingToken}`)
            return context.fencingToken
          })
        await step('before')
        if (context.fencingToken === 1) await Promise.resolve(handle(context)).catch(() => step('within'))
        if (context.fencingToken === 1) return new Promise(() => {})
        return { n: (await step('before')) + (await step('within')) }
      },
    })
    const id = await enqueue(long, {})
    const first = await start('test:1')
    await holds(1)
    await first.drain({ drainMs: 0, graceMs: 1_000 })
    const { steps: kept, ...waiting } = await find(id)
    expect([waiting, kept?.toSorted()]).toMatchObject([{ status: 'waiting', attemptsMade: 0 }, ['before', 'within']])
    await start('test:2')
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 }, fencingToken: 2, attemptsMade: 1 })
    expect(runs).toEqual(['before 1', 'within 1'])
  })

  it('step results of a dead worker are there for the next one', async () => {
    const { handle, holds } = gate()
    const runs: number[] = []
    const { enqueue, start, settled, backend } = await openSetup(open, {
      handle: async (context) => {
        const n = await context.once('pay', () => runs.push(context.fencingToken) + 6)
        return context.fencingToken === 1 ? handle(context) : { n }
      },
      locks: 'quick',
    })
    const id = await enqueue(long, {})
    await start('test:1')
    await holds(1)
    await backend.kill('test:1', [id])
    await start('test:2')
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 7 }, fencingToken: 2 })
    expect(runs).toEqual([1])
  })

  it('an attempt that lost its lock cannot store a step result over that of the next owner', async () => {
    const owned = Promise.withResolvers<void>()
    const refused = Promise.withResolvers<void>()
    const codes: unknown[] = []
    const { enqueue, start, settled, backend, find } = await openSetup(open, {
      // A short task is not signalled.
      handle: async ({ once, fencingToken: number }: Context) => {
        if (number === 1) await owned.promise
        const { n } = await once('pay', () => ({ n: number })).catch((error) => {
          codes.push(error.code)
          refused.resolve()
          throw error
        })
        owned.resolve()
        if (number === 2) await refused.promise
        return { n }
      },
      locks: 'quick',
    })
    const id = await enqueue(short, {})
    await start()
    await eventually(async () => (await find(id)).status === 'active')
    await backend.loseLock(id)
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      output: { n: 2 },
      fencingToken: 2,
      attempts: [
        { fencingToken: 1, reason: 'process_lost' },
        { fencingToken: 2, state: 'DONE_SUCCESS' },
      ],
    })
    expect(codes).toEqual(['lock_lost'])
  })

  it('a step result that is too large or not JSON is refused', async () => {
    const { enqueue, start, settled } = await openSetup(open, {
      handle: async ({ once }) => {
        const codes: unknown[] = []
        // A rejected result is not stored, but its name cannot be used again.
        for (const [n, result] of ['x'.repeat(999), 1n, undefined].entries()) {
          await once(`${n}`, () => result as string).catch(({ code }) => codes.push(code))
        }
        return { codes, length: (await once('pay', () => 'x'.repeat(998))).length }
      },
    })
    await start()
    const { output } = (await settled(await enqueue(plain, {}))) ?? {}
    expect(output).toEqual({ codes: Array.from({ length: 3 }, () => 'invalid_result'), length: 998 })
  })
}
