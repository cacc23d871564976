// Makes the pipelines of a random program, and the handlers of their tasks.
import { setTimeout as sleep } from 'node:timers/promises'
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
  type FleetPipeline,
  type FleetPipelineDefinition,
  TaskError,
} from '@bullpen/contract'
import { z } from 'zod'
import { faultOf, type Item, joined, transform, yieldedAt } from './items.fixture.ts'
import type { Ledger } from './ledger.fixture.ts'
import type { PlannedRun } from './program.fixture.ts'

export const QUEUES = ['first', 'second'] as const

const input = z.object({ run: z.int() })
const item = z.object({
  run: z.int(),
  ats: z.array(z.int()).readonly(),
  value: z.int(),
  passed: z.int(),
  padding: z.string(),
})
const itemOrBatch = z.union([item, z.array(item)])
/** Calls that time out on a busy machine must not exhaust the attempts. */
const retry = { maxAttempts: 20, backoff: { initialDelay: '5ms', maxDelay: '50ms', jitter: 0 } } as const
const ofStage = { input: itemOrBatch, output: item.optional(), timeout: '10s', retry } as const
const first = defineTask({ name: 'property.first', queue: QUEUES[0], ...ofStage })
const second = defineTask({ name: 'property.second', queue: QUEUES[1], ...ofStage })
const source = defineSource({ name: 'property.source', queue: QUEUES[0], input, item, retry })
const gather = defineReducer({
  name: 'property.gather',
  queue: QUEUES[1],
  input,
  item: itemOrBatch,
  output: z.array(item),
  retry,
})
export const catalogue = defineCatalogue(source, first, second, gather)

export function pipelineOf({
  onError,
  maxErrors,
  ordered,
  stages,
  resultBatch,
  take,
  reduces,
}: PlannedRun): FleetPipelineDefinition {
  let pipeline: FleetPipeline<z.input<typeof input>, Item | Item[]> = definePipeline('property', {
    onError,
    maxErrors,
    ordered,
  }).source(source)
  for (const { queue, batch, ...bounds } of stages) {
    if (batch !== undefined) pipeline = pipeline.batch(batch)
    pipeline = queue === 0 ? pipeline.map(first, bounds) : pipeline.map(second, bounds)
  }
  if (resultBatch !== undefined) pipeline = pipeline.batch(resultBatch)
  if (take !== undefined) pipeline = pipeline.take(take)
  return reduces ? pipeline.reduce(gather) : pipeline
}

/** Returns a function that creates the handlers for a process. `isLost` tells whether others may run the process's tasks. */
export function handlersOf(runs: readonly { readonly planned: PlannedRun; readonly ledger: Ledger }[]) {
  const of = (number: number) => {
    const run = runs[number]
    if (run === undefined) throw new Error(`there is no run ${number}`)
    return run
  }
  /** What has failed, and will not fail again. */
  const failed = new Set<string>()
  const failIf = (name: string, fault: 'fail' | 'once'): void => {
    if (fault === 'once' && failed.has(name)) return
    failed.add(name)
    throw new TaskError('unlucky', `${name} fails as planned`, { retryable: fault === 'once' })
  }
  return (process: { readonly name: string; isLost(): boolean }) => {
    const handle = async ({ input }: { readonly input: Item | Item[] }): Promise<Item | undefined> => {
      const given = joined(input)
      const { planned, ledger } = of(given.run)
      const [stage, [at = 0]] = [given.passed + 1, given.ats]
      const leave = ledger.enter(process.isLost() ? undefined : process.name, stage, at)
      try {
        await sleep((7 * at + 3 * stage) % 5)
        const fault = faultOf(planned, stage, given)
        if (fault === 'drop') return undefined
        if (fault !== undefined) failIf(`${given.run} ${stage}.${at}`, fault)
        return transform(given)
      } finally {
        leave()
      }
    }
    return {
      [first.name]: defineHandler(first, import.meta.url, handle),
      [second.name]: defineHandler(second, import.meta.url, handle),
      [source.name]: defineSourceHandler(source, import.meta.url, function* ({ run }, _context, cursor) {
        const { planned } = of(run)
        const { count, source: plan } = planned
        for (let n = typeof cursor === 'number' ? cursor : 0; n < count; n++) {
          if (n === plan.fails?.at) failIf(`${run} source`, plan.fails.isFinal ? 'fail' : 'once')
          yield plan.hasCursors ? at(n + 1, yieldedAt(planned, run, n)) : yieldedAt(planned, run, n)
        }
      }),
      [gather.name]: defineReduceHandler(gather, import.meta.url, (items) =>
        items.map((each) => ({ ...joined(each), padding: '' })),
      ),
    }
  }
}
