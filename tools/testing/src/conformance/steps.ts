// Conformance: the steps of a task run once, whatever becomes of its starts.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { type Context, gate, long, openStage, plain, short } from './stage.ts'

export function steps(open: OpenBackend): void {
  it.each([short, long])(
    'of $name runs in the first of its attempts, and has its result in all',
    async (definition) => {
      const keys: string[] = []
      const results: unknown[] = []
      const { enqueue, start, settled } = await openStage(open, {
        handle: async ({ once, attempt, input }) => {
          const pay = (key: string) => {
            keys.push(key)
            return { paid: attempt, of: [null, 1.5, {}, []] }
          }
          results.push(await once('pay: ä\n', pay))
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

  it('is there after a hand back, and so is what was kept within the grace', async () => {
    const { handle, holds } = gate()
    const runs: string[] = []
    const { enqueue, start, settled, find } = await openStage(open, {
      handle: async (context) => {
        const step = (name: string) =>
          context.once(name, () => {
            runs.push(`${name} ${context.start}`)
            return context.start
          })
        await step('before')
        if (context.start === 1) await Promise.resolve(handle(context)).catch(() => step('within'))
        if (context.start === 1) return new Promise(() => {})
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

  it('is there for another process when the one that ran it has died', async () => {
    const { handle, holds } = gate()
    const runs: number[] = []
    const { enqueue, start, settled, backend } = await openStage(open, {
      handle: async (context) => {
        const n = await context.once('pay', () => runs.push(context.start) + 6)
        return context.start === 1 ? handle(context) : { n }
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

  it('is not kept by a start that has lost its lock: what its next owner keeps is not overwritten', async () => {
    const owned = Promise.withResolvers<void>()
    const refused = Promise.withResolvers<void>()
    const codes: unknown[] = []
    const { enqueue, start, settled, backend, find } = await openStage(open, {
      // A short one is not told of the loss.
      handle: async ({ once, start: number }: Context) => {
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
      attempts: [{ fencingToken: 2 }],
    })
    expect(codes).toEqual(['lock_lost'])
  })

  it('is refused where its result is larger than an output may be, or can not be kept', async () => {
    const { enqueue, start, settled } = await openStage(open, {
      handle: async ({ once }) => {
        const codes: unknown[] = []
        // What was refused is not kept, and counts as done: each has a name of its own.
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
