// Counts a visit. The faulty handler reads the counter and writes the sum.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const visit = defineTask({ name: 'visit.count', queue: 'visits', input: z.object({ page: z.string() }) })
const input = { page: 'home' }

const resources = () => {
  const counters = new Map<string, number>()
  const countedTasks = new Set<string>()
  return {
    counters: {
      read: async (page: string) => counters.get(page) ?? 0,
      write: effect(async (page: string, count: number) => void counters.set(page, count), {
        deduplicatedBy: 'arguments',
      }),
      /** Adds 1 unless the task has been counted, as a transaction with a unique column does. */
      countOnce: effect(
        async (page: string, task: string) => {
          if (!countedTasks.has(task)) counters.set(page, (counters.get(page) ?? 0) + 1)
          countedTasks.add(task)
        },
        { deduplicatedBy: (_page, task) => task },
      ),
    },
  }
}

type Context = TaskContext<typeof visit, ReturnType<typeof resources>>

const faulty = defineHandler(visit, import.meta.url, async ({ input: { page }, resources: { counters } }: Context) => {
  await counters.write(page, (await counters.read(page)) + 1)
})

const idempotent = defineHandler(visit, import.meta.url, async ({ id, input: { page }, resources }: Context) => {
  await resources.counters.countOnce(page, id)
})

export const counterFault: PlantedFault = {
  name: 'a counter that is read and written',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [{ kind: 'unexpected', effect: 'counters.write("home", 2)', foundBy: ['crash', 'timeout', 'lock_lost'] }],
}
