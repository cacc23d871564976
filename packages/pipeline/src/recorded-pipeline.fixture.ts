// Builds the pipeline of a random program, whose functions record what they do.
import { definePipeline, type Pipeline } from '@bullpen/contract'
import { applied, type CallStage, type Item, type Program } from './programs.fixture.ts'

/** What the functions of a run record. */
export interface Recorded {
  /** How many calls have started and not returned. */
  running: number
  /** What the functions threw, in the order of time. */
  readonly thrown: string[]
  calls: number
  sourceIsOpen: boolean
  /** No function may be called any more. */
  over: boolean
  /** What a function did although it must not. */
  fault: string | undefined
}

/** Returns the pipeline of the program. `later` resolves at a time that the test decides. */
export function pipelineOf(
  { items, sourceFails, sourceIsAsync, ordered, onError, stages }: Program,
  later: () => Promise<void>,
): { readonly pipeline: Pipeline<unknown, Item, 'cancel' | 'collect'>; readonly recorded: Recorded } {
  const recorded: Recorded = { running: 0, thrown: [], calls: 0, sourceIsOpen: false, over: false, fault: undefined }
  function* source() {
    recorded.sourceIsOpen = true
    try {
      for (let i = 0; i < items; i++) yield String(i)
      if (sourceFails) throw 'source'
    } finally {
      recorded.sourceIsOpen = false
    }
  }
  async function* asyncSource() {
    recorded.sourceIsOpen = true
    try {
      for (const item of source()) {
        await later()
        recorded.sourceIsOpen = true
        yield item
      }
    } finally {
      await later()
      recorded.sourceIsOpen = false
    }
  }
  /** How many items are in each stage: those that run, and results that the next stage has not taken. */
  const inside: number[] = stages.map(() => 0)
  const isCall = (index: number): boolean => stages[index]?.kind === 'map' || stages[index]?.kind === 'expand'
  const count = (index: number, change: number): void => {
    inside[index] = (inside[index] ?? 0) + change
  }

  const start = definePipeline<'cancel' | 'collect'>('random', { ordered, onError })
  let pipeline: Pipeline<unknown, Item, 'cancel' | 'collect'> = sourceIsAsync
    ? start.source<Item>(asyncSource)
    : start.source<Item>(source)
  for (const [index, stage] of stages.entries()) {
    if (stage.kind === 'batch') pipeline = pipeline.batch(stage.size) as typeof pipeline
    else if (stage.kind === 'take') pipeline = pipeline.take(stage.count)
    else if (stage.kind === 'flat')
      pipeline = (pipeline as typeof pipeline & Pipeline<unknown, Item[], 'cancel'>).flat()
    else pipeline = pipeline.map(recordedCall(stage, index), stage)
  }
  return { pipeline, recorded }

  function recordedCall(stage: CallStage, index: number) {
    let here = 0
    const attempt = (item: Item): Item | undefined => {
      try {
        const result = applied(stage, index, item)
        if (result === undefined) count(index, -1)
        return result
      } catch (error) {
        count(index, -1)
        recorded.thrown.push(String(error))
        // Above a full `take`, errors do not matter.
        recorded.over ||= onError === 'cancel' && !stages.some(({ kind }) => kind === 'take')
        throw error
      } finally {
        here--
        recorded.running--
      }
    }
    return (item: Item): Item | undefined | Promise<Item | undefined> => {
      recorded.calls++
      recorded.running++
      if (recorded.over) recorded.fault = `stage ${index} is called after the end`
      count(index, 1)
      if (isCall(index - 1)) count(index - 1, -1)
      if (isCall(index + 1) && Number(inside[index]) > stage.concurrency + stage.buffer) {
        recorded.fault = `stage ${index} holds ${inside[index]} items`
      }
      if (++here > stage.concurrency) recorded.fault = `stage ${index} runs ${here} calls`
      return stage.isAsync ? later().then(() => attempt(item)) : attempt(item)
    }
  }
}
