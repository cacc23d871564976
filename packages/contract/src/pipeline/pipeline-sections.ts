// Divides the stages of a pipeline of tasks into sections, and computes how many items these can hold.
//
// A section is the stages between two batches. Its items are numbered from 0 in the order in which they enter it, so a position after a
// batch is the number of that batch. The source itself forms the batches that follow it, so these do not begin a second section.

/** What the bounds of a stage depend on. `batch` is how many items each of the stage's tasks gets as an array. */
export interface BoundedStage {
  readonly concurrency: number
  readonly buffer: number
  readonly batch?: number | undefined
}

export interface PipelineSection {
  /** The numbers of the first and the last stage, starting from 1. */
  readonly first: number
  readonly last: number
  /** How many of its own items may be in the section, or wait after it for the rest of a batch. */
  readonly window: number
  /** How many of the source's items each of the section's own items contains at most. */
  readonly unit: number
}

interface BoundedPipeline {
  readonly stages: readonly BoundedStage[]
  readonly resultBatch?: number | undefined
}

/** Returns how many items each task of the stage with this number gets as an array. The results are stage `stages.length + 1`. */
export function batchSize({ stages, resultBatch }: BoundedPipeline, stage: number): number | undefined {
  return stage === stages.length + 1 ? resultBatch : stages[stage - 1]?.batch
}

/**
 * Returns how many tasks and waiting outputs a stage may have. A batch after the stage needs room for all of its items, because it is
 * passed on only when it is full.
 */
export function stageRoom(pipeline: BoundedPipeline, stage: number): number {
  const { concurrency = 0, buffer = 0 } = pipeline.stages[stage - 1] ?? {}
  return concurrency + buffer + (batchSize(pipeline, stage + 1) ?? 1) - 1
}

/** Returns the sections of a pipeline that has at least one stage. */
export function sectionsOf(pipeline: BoundedPipeline): readonly PipelineSection[] {
  const sections: PipelineSection[] = []
  for (let stage = 1; stage <= pipeline.stages.length; stage++) {
    const size = batchSize(pipeline, stage)
    // Twice the items that may wait for the rest of a batch: even then, half of the window is free, so that further items are requested.
    const window = stageRoom(pipeline, stage) + (batchSize(pipeline, stage + 1) ?? 1) - 1
    const before = sections.at(-1)
    if (before === undefined || size !== undefined) {
      sections.push({ first: stage, last: stage, window, unit: (before?.unit ?? 1) * (size ?? 1) })
    } else sections[sections.length - 1] = { ...before, last: stage, window: before.window + window }
  }
  return sections
}

/** Returns how many of the source's items can be between the source and the results. */
export function sourceWindow(pipeline: BoundedPipeline): number {
  return sectionsOf(pipeline).reduce((sum, { window, unit }) => sum + window * unit, 0)
}
