// Connects the stages of a pipeline for one run.
import type { AnyIterable, PipelineDefinition, StageContext } from '@bullpen/contract'
import type { SourceStage, Stage } from '@bullpen/contract/internal'
import { createBatchNode } from './nodes/batch-node.ts'
import { createFlatNode } from './nodes/flat-node.ts'
import { createMapNode } from './nodes/map-node.ts'
import type { StageNode, Upstream } from './nodes/node.ts'
import { createSourceNode } from './nodes/source-node.ts'
import { createTakeNode } from './nodes/take-node.ts'
import type { RunState } from './run.ts'
import type { Sink } from './sinks/sink.ts'

/** The last stage of a pipeline that does not return all of its results. */
export type EndStage = Extract<Stage, { kind: 'reduce' | 'fold' }>

type PassingStage = Exclude<Stage, EndStage>
type OpenSource = (input: unknown, context: StageContext) => AnyIterable<unknown> | PromiseLike<AnyIterable<unknown>>

export const isEnd = (stage: SourceStage | Stage): stage is EndStage => stage.kind === 'reduce' || stage.kind === 'fold'

/** Connects all stages with the sink. No function is called before the sink requests an item. */
export function assemble(
  { stages: [source, ...stages], ordered }: PipelineDefinition,
  input: unknown,
  run: RunState,
  sink: Sink,
): void {
  // A `take` stops only what is above it, so the stages above it have another signal than those below.
  let scope = 0
  let below: Sink = sink
  let following: PassingStage | undefined
  let last: Upstream | undefined

  const nodeOf = (stage: PassingStage): StageNode => {
    switch (stage.kind) {
      case 'map': {
        const limit = ordered && following?.kind === 'take' ? following.count : Number.POSITIVE_INFINITY
        return createMapNode(stage, { ordered, limit }, run, run.context(stage.name, scope), below)
      }
      case 'batch':
        return createBatchNode(stage.size, below)
      case 'flat':
        return createFlatNode(stage.name, run, below)
      case 'take': {
        const above = ++scope
        return createTakeNode(stage.count, () => run.abort(above), below)
      }
    }
  }

  for (const stage of stages.filter((each) => !isEnd(each)).toReversed()) {
    const node = nodeOf(stage)
    below.connect(node)
    last ??= node
    below = node
    following = stage
  }
  const from = source.from as AnyIterable<unknown> | OpenSource
  const open = (context: StageContext) => (typeof from === 'function' ? from(input, context) : from)
  const sourceNode = createSourceNode(open, run, run.context(source.name, scope), below)
  below.connect(sourceNode)
  run.attach(last ?? sourceNode)
}
