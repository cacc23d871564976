// Handlers that use up memory in five ways, one that uses up the stack, and two modest ones.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const here = import.meta.url
const schemas = { input: z.object({ n: z.int(), ms: z.int().default(0) }), output: z.object({ twice: z.int() }) }
const inline = { queue: 'hogs', timeout: '1m', retry: { maxAttempts: 1 }, ...schemas } as const
const isolated = { ...inline, isolation: 'process', memoryLimit: '64MiB' } as const

const objects = defineTask({ name: 'hog.objects', ...isolated })
const array = defineTask({ name: 'hog.array', ...isolated })
const map = defineTask({ name: 'hog.map', ...isolated })
const json = defineTask({ name: 'hog.json', ...isolated })
const buffers = defineTask({ name: 'hog.buffers', ...isolated })
const stack = defineTask({ name: 'hog.stack', ...inline })
const modestHere = defineTask({ name: 'modest.inline', ...inline })
/** This task has the same memory limit as the hogs, so that it shares their processes. */
const modestThere = defineTask({ name: 'modest.process', ...isolated })

export const memoryHogTasks = defineCatalogue(objects, array, map, json, buffers, stack, modestHere, modestThere)

export const holdsObjects = defineHandler(objects, here, () => {
  for (const kept: object[] = []; ; ) kept.push({ at: kept.length, in: [kept.length] })
})

export const holdsArray = defineHandler(array, here, () => {
  const numbers = new Array(30_000_000).fill(1.5)
  return { twice: numbers.length }
})

export const holdsMap = defineHandler(map, here, () => {
  for (const kept = new Map<number, object>(); ; ) kept.set(kept.size, { at: kept.size })
})

/** Parses 12 MB of text, which takes up much more memory once it is parsed. */
export const holdsParsed = defineHandler(json, here, () => {
  const parsed = JSON.parse(`[${'{},'.repeat(4_000_000)}1]`)
  return { twice: parsed.length }
})

/** Allocates memory outside V8's heap, which Node's own limit does not cover. */
export const holdsBuffers = defineHandler(buffers, here, () => {
  for (const kept: Buffer[] = []; ; ) kept.push(Buffer.alloc(2 ** 22, 1))
})

const deeper = (): never => deeper()
export const overflows = defineHandler(stack, here, () => deeper())

interface Modest {
  readonly input: { readonly n: number; readonly ms: number }
}
const double = async ({ input }: Modest) => {
  if (input.ms > 0) await sleep(input.ms)
  return { twice: 2 * input.n }
}
export const doublesHere = defineHandler(modestHere, here, double)
export const doublesThere = defineHandler(modestThere, here, double)
