// Posts the items of a batch and remembers how far it got. The faulty handler posts an item again that it has not remembered.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const batch = defineTask({ name: 'batch.post', queue: 'batches', input: z.object({ items: z.array(z.string()) }) })
const input = { items: ['a', 'b', 'c'] }

const resources = () => {
  const cursors = new Map<string, number>()
  return {
    api: { post: effect(async (_item: string, _key?: string) => {}, { deduplicatedBy: (_item, key) => key }) },
    cursors: {
      read: async (id: string) => cursors.get(id) ?? 0,
      write: async (id: string, cursor: number) => void cursors.set(id, Math.max(cursor, cursors.get(id) ?? 0)),
    },
  }
}

type Context = TaskContext<typeof batch, ReturnType<typeof resources>>

const handlerOf = (keyOf: (id: string, item: string) => string | undefined) =>
  defineHandler(batch, import.meta.url, async (context: Context) => {
    const { id, input, progress, checkpoint } = context
    const { api, cursors } = context.resources
    for (let done = await cursors.read(id); done < input.items.length; done++) {
      checkpoint()
      const item = input.items[done] ?? ''
      await api.post(item, keyOf(id, item))
      await cursors.write(id, done + 1)
      await progress((done + 1) / input.items.length)
    }
  })

export const batchFault: PlantedFault = {
  name: 'a batch whose cursor lags behind',
  faulty: () =>
    simulate(
      handlerOf(() => undefined),
      input,
      { resources },
    ),
  idempotent: (options) =>
    simulate(
      handlerOf((id, item) => `${id} ${item}`),
      input,
      { resources, ...options },
    ),
  faults: ['a', 'b', 'c'].map((item) => ({
    kind: 'repeated',
    effect: `api.post("${item}")`,
    foundBy: ['crash', 'lock_lost'],
  })),
}
