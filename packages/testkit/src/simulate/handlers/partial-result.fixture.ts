// Posts the items of a batch and stops at a signal. The faulty handler then returns as if it had finished.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const sync = defineTask({
  name: 'items.sync',
  queue: 'items',
  input: z.object({ items: z.array(z.string()) }),
  output: z.object({ posted: z.int() }),
})
const input = { items: ['a', 'b'] }

const resources = () => ({ api: { put: effect(async (_item: string) => {}, { deduplicatedBy: 'arguments' }) } })

type Context = TaskContext<typeof sync, ReturnType<typeof resources>>

const faulty = defineHandler(sync, import.meta.url, async ({ input, signal, resources: { api } }: Context) => {
  let posted = 0
  for (const item of input.items) {
    if (signal.aborted) break
    await api.put(item)
    posted++
  }
  return { posted }
})

const idempotent = defineHandler(sync, import.meta.url, async ({ input, checkpoint, resources: { api } }: Context) => {
  for (const item of input.items) {
    checkpoint()
    await api.put(item)
  }
  return { posted: input.items.length }
})

export const partialResultFault: PlantedFault = {
  name: 'a partial result that counts as success',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [{ kind: 'missing', effect: 'api.put("b")', foundBy: ['drain'] }],
}
