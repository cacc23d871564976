// Defines the error of a run of a pipeline.
import { BullpenError } from '../errors/errors.ts'

export type PipelineErrorCode = 'stage_failed' | 'source_failed' | 'pipeline_cancelled'

interface Place {
  readonly pipeline: string
  /** The name of the stage. Undefined if the run was cancelled from outside. */
  readonly stage?: string | undefined
  readonly position?: string | undefined
}

/**
 * Reports why a run of a pipeline failed, or why one of its items did. `cause` is what the function threw or, with the code
 * `pipeline_cancelled`, the reason of the signal.
 */
export class PipelineError extends BullpenError {
  declare readonly code: PipelineErrorCode
  readonly pipeline: string
  /** The name of the stage whose function threw. Undefined if the run was cancelled from outside. */
  readonly stage: string | undefined
  /**
   * The number that the source gave the item, from 0, such as `17`. A batch has the number of its first item. After `flat`, the index in
   * the array follows, such as `17.3`. Undefined if the error does not concern a single item.
   */
  readonly position: string | undefined

  constructor(code: PipelineErrorCode, cause: unknown, { pipeline, stage, position }: Place) {
    super(code, `pipeline '${pipeline}' ${PROBLEMS[code](stage, position)}${described(cause)}`, { cause })
    this.pipeline = pipeline
    this.stage = stage
    this.position = position
  }
}

const PROBLEMS: Readonly<
  Record<PipelineErrorCode, (stage: string | undefined, position: string | undefined) => string>
> = {
  stage_failed: (stage, position) =>
    position === undefined ? `failed in stage '${stage}'` : `failed in stage '${stage}' at item ${position}`,
  source_failed: (stage) => `failed in its source '${stage}' after processing all earlier items`,
  pipeline_cancelled: () => 'was cancelled',
}

function described(cause: unknown): string {
  if (cause === undefined) return ''
  return `: ${cause instanceof Error ? cause.message : String(cause)}`
}
