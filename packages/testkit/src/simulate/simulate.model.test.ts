// Compares simulations of random handlers with a model of what a crash at each point leaves behind.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { it } from 'vitest'
import { z } from 'zod'
import { effect } from './effect.ts'
import { simulate } from './simulate.ts'

/** One operation of a handler. An effect with a key is recognised by the receiving system. */
type Operation =
  | { readonly kind: 'effect'; readonly hasKey: boolean }
  | { readonly kind: 'step'; readonly hasKey: boolean }
  | { readonly kind: 'progress' }

const program = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('effect' as const), hasKey: fc.boolean() }),
    fc.record({ kind: fc.constant('step' as const), hasKey: fc.boolean() }),
    fc.record({ kind: fc.constant('progress' as const) }),
  ),
  { minLength: 1, maxLength: 5 },
)

const task = defineTask({ name: 'random.program', queue: 'random', input: z.object({}) })

function resources() {
  const post = async (_operation: number) => 'posted'
  return { api: { post: effect(post), postOnce: effect(post, { deduplicatedBy: 'arguments' }) } }
}

const handlerOf = (operations: readonly Operation[]) =>
  defineHandler(
    task,
    import.meta.url,
    async ({ once, progress, resources: { api } }: TaskContext<typeof task, ReturnType<typeof resources>>) => {
      for (const [index, operation] of operations.entries()) {
        if (operation.kind === 'progress') {
          await progress(index / operations.length)
          continue
        }
        const post = operation.hasKey ? api.postOnce : api.post
        if (operation.kind === 'effect') await post(index)
        else await once(`step ${index}`, () => post(index))
      }
    },
  )

/** What is left of a task: how often each operation's effect has happened, and which steps are stored. */
interface World {
  readonly times: readonly number[]
  readonly stored: ReadonlySet<number>
}

/** Returns the worlds that a crash leaves behind, at each point of an attempt that begins in `world`. The last is that of no crash. */
function worldsAfterCrash(operations: readonly Operation[], world: World): readonly World[] {
  const worlds: World[] = []
  let { times, stored } = world
  const point = (): void => void worlds.push({ times, stored })
  for (const [index, operation] of operations.entries()) {
    point()
    if (operation.kind === 'progress' || (operation.kind === 'step' && stored.has(index))) {
      point()
      continue
    }
    if (operation.kind === 'step') point()
    times = times.map((count, other) => (other === index && !(operation.hasKey && count > 0) ? count + 1 : count))
    point()
    if (operation.kind !== 'step') continue
    point()
    stored = new Set([...stored, index])
    point()
  }
  point()
  return worlds
}

it('a simulation finds exactly the effects that a crash repeats, at exactly the points where it does', async () => {
  await fc.assert(
    fc.asyncProperty(program, async (operations) => {
      const begin: World = { times: operations.map(() => 0), stored: new Set() }
      const crashed = worldsAfterCrash(operations, begin)
      const ends = crashed.map((world) => worldsAfterCrash(operations, world))
      const repeatedBy = operations.map(
        (_, index) => ends.filter((worlds) => (worlds.at(-1)?.times[index] ?? 0) > 1).length,
      )
      const options = { resources, kinds: ['crash'], withoutEffects: true, maxRuns: 5_000 } as const

      const found = await simulate(handlerOf(operations), {}, options)
      const times = new Map(found.faults.map(({ effect: name, runs }) => [name, runs.length]))
      for (const [index, count] of repeatedBy.entries()) {
        const repeated = times.get(`api.post(${index})`) ?? 0
        if (repeated !== count) throw new Error(`operation ${index}: ${count} repetitions expected, ${repeated} found`)
      }
      if (found.points !== crashed.length) throw new Error(`${crashed.length} points expected, ${found.points} found`)
      if (found.faults.some(({ kind }) => kind !== 'repeated')) throw new Error(found.summary)

      const { runs } = await simulate(handlerOf(operations), {}, { ...options, pairs: true })
      const pairs = ends.reduce((sum, worlds) => sum + worlds.length, 0)
      if (runs !== 2 + crashed.length + pairs) throw new Error(`${pairs} pairs expected, ${runs} runs found`)
    }),
    { numRuns: amount({ small: 8, full: 200 }) },
  )
})
