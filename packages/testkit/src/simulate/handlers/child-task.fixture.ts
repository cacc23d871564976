// Enqueues a child task for each page. The faulty handler uses other child keys in each attempt.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const page = defineTask({ name: 'page.crawl', queue: 'pages', input: z.object({ page: z.int() }) })
const site = defineTask({ name: 'site.crawl', queue: 'sites', input: z.object({ pages: z.int() }) })
const input = { pages: 2 }

const handlerOf = (childKey: (context: TaskContext<typeof site>, number: number) => string) =>
  defineHandler(site, import.meta.url, async (context) => {
    for (let number = 1; number <= context.input.pages; number++) {
      await context.enqueue(page, { page: number }, { childKey: childKey(context, number) })
    }
  })

export const childTaskFault: PlantedFault = {
  name: 'a child key that changes',
  faulty: () =>
    simulate(
      handlerOf(({ fencingToken }, number) => `${fencingToken}-${number}`),
      input,
    ),
  idempotent: (options) =>
    simulate(
      handlerOf((_, number) => `${number}`),
      input,
      options,
    ),
  faults: [1, 2].map((number) => ({
    kind: 'repeated',
    effect: `ctx.enqueue("page.crawl", { page: ${number} })`,
    foundBy: ['crash', 'timeout', 'lock_lost'],
  })),
}
