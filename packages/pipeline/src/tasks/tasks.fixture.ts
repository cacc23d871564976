// Pipelines of tasks for tests: their definitions, their handlers, and a run on the memory broker to compare with.
import {
  at,
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  defineTask,
  type FleetPipelineDefinition,
  type TaskContext,
  TaskError,
} from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES, tasksOf, toHandlers } from '@bullpen/contract/internal'
import { planRun } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { memoryBroker, memoryPool } from '@bullpen/testkit'
import { z } from 'zod'
import type { StageHandlers } from './task-run-options.ts'

const item = z.object({ n: z.int() })
/** Retried at once, and then dead. */
const retry = { maxAttempts: 3, backoff: { type: 'fixed', initialDelay: '1ms' } } as const

export const count = defineSource({ name: 'test.count', queue: 'q', input: z.object({ upTo: z.int() }), item, retry })
export const square = defineTask({ name: 'test.square', queue: 'q', input: item, output: item, retry, grace: '50ms' })
export const odd = defineTask({
  name: 'test.odd',
  queue: 'q',
  kind: 'short',
  input: item,
  output: item.optional(),
  retry,
})
export const sum = defineReducer({
  ...{ name: 'test.sum', queue: 'q', input: z.object({ upTo: z.int() }), item },
  output: z.object({ sum: z.int(), ns: z.array(z.int()), upTo: z.int() }),
})

const single = z.union([item, z.array(item)])
/** Adds up the numbers of a batch, except that of 36, with which it fails. */
export const total = defineTask({ name: 'test.total', queue: 'q', input: z.array(item), output: item })
/** Gets batches of results. */
export const gather = defineReducer({
  name: 'test.gather',
  queue: 'q',
  input: z.object({ upTo: z.int() }),
  item: single,
  output: z.unknown(),
})

export const handlers = {
  [total.name]: defineHandler(total, import.meta.url, async ({ input }) => {
    const n = input.reduce((all, each) => all + each.n, 0)
    if (n === 36) throw new TaskError('unlucky', 'thirty-six', { retryable: false })
    return { n }
  }),
  [gather.name]: defineReduceHandler(gather, import.meta.url, (items) => items),
  [count.name]: defineSourceHandler(count, import.meta.url, function* ({ upTo }) {
    for (let n = 0; n < upTo; n++) yield { n }
    if (upTo === 13) throw new TaskError('unlucky', 'thirteen items', { retryable: false })
  }),
  [square.name]: defineHandler(square, import.meta.url, async ({ input: { n } }) => {
    if (n === 20) throw new TaskError('too_large', 'twenty', { retryable: false })
    return { n: n * n }
  }),
  [odd.name]: defineHandler(odd, import.meta.url, ({ input }) => (input.n % 2 === 1 ? input : undefined)),
  [sum.name]: defineReduceHandler(sum, import.meta.url, (items, { input: { upTo } }) => {
    const ns = items.map(({ n }) => n)
    return { sum: ns.reduce((all, n) => all + n, 0), ns, upTo }
  }),
}

type CountContext = TaskContext<typeof count>
type SquareContext = TaskContext<typeof square>

/** The handlers, with other ones of the source or of the stage `square`. */
export function withHandlers({
  source,
  stage,
}: {
  source?: (
    upTo: number,
    context: CountContext,
    cursor: unknown,
  ) => Iterable<{ n: number }> | AsyncIterable<{ n: number }>
  stage?: (context: SquareContext) => { n: number } | Promise<{ n: number }>
}): typeof handlers {
  return {
    ...handlers,
    ...(source && {
      [count.name]: defineSourceHandler(count, import.meta.url, ({ upTo }, context, cursor) =>
        source(upTo, context, cursor),
      ),
    }),
    ...(stage && { [square.name]: defineHandler(square, import.meta.url, stage) }),
  }
}

export const cursorItem = (n: number): { n: number } => at(n + 1, { n }) as unknown as { n: number }

export const oddSquares = definePipeline('odd-squares').source(count).map(square, { concurrency: 3 }).map(odd)

/** How a run of a pipeline on workers has ended. */
export interface FleetEnd {
  readonly result: string | undefined
  readonly output: unknown
  readonly errorCount: number
}

/** Runs a pipeline on the memory broker, with one worker. */
export async function runOnBroker(
  pipeline: FleetPipelineDefinition,
  input: unknown,
  given: StageHandlers,
): Promise<FleetEnd> {
  const broker = memoryBroker({ clock: systemClock })
  const [first = pipeline.source, ...others] = new Set(tasksOf(pipeline))
  const catalogue = defineCatalogue(first, ...others, pipeline)
  const own = Object.fromEntries(catalogue.definitions.map(({ name }) => [name, given[name]]))
  const pool = memoryPool(broker, {
    ...{ clock: systemClock, queue: 'q', concurrency: 4, catalogue },
    handlers: toHandlers(catalogue, own),
  })
  const now = Date.now()
  const random = crypto.getRandomValues(new Uint8Array(ID_RANDOM_BYTES))
  const id = createRunId(now, random)
  await pool.start()
  try {
    await broker.runs.start(planRun(pipeline, { id, by: 'test', input, random, now, correlationId: undefined }))
    const run = await broker.runs.waitUntilEnded(id, AbortSignal.timeout(120_000))
    return { result: run?.ended?.result, output: await broker.runs.output(id), errorCount: run?.errors ?? 0 }
  } finally {
    await pool.drain({ drainMs: 0, graceMs: 0 })
    await broker.close()
  }
}
