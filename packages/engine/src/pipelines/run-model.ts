// Defines what a decision about a pipeline run reads and returns, and the draft on which a decision works.
import type { MemberEnd } from '@bullpen/contract'
import { type PipelineSection, sectionsOf } from '@bullpen/contract/internal'
import type { Run, RunError, RunSource, RunStop, SectionCounts, StageCounts } from '../ports/broker/runs.ts'
import { MAX_PASSED_BYTES, referenceTo } from './kept-input.ts'

/** An item on its way. `value` is stored text that is not interpreted here. */
export interface RunItem {
  readonly position: number
  readonly value: string
}

export interface RunModel {
  readonly run: Run
  /**
   * For each stage, the items that wait for it, the oldest first. If the results are batches, the last list contains the outputs that
   * wait for the rest of a batch.
   */
  readonly waiting: readonly (readonly RunItem[])[]
  /** The tasks of the run that have not ended, as {@link runTaskName} returns them. */
  readonly tasks: ReadonlySet<string>
  /** The inputs of these tasks that are too large to be passed on, by the task's name. Their tasks get references instead. */
  readonly inputs: ReadonlyMap<string, string>
  /**
   * If the run is ordered, what has arrived at the end of a section before an earlier item, by the section's number and the position:
   * values, or undefined for an item that has none.
   */
  readonly early: ReadonlyMap<string, string | undefined>
}

/** The end of a task of a run. `value` is its output, or undefined if it has none. Only a completed task has a value. */
export interface EndedRunTask {
  readonly stage: number
  readonly position: number
  readonly end: MemberEnd
  readonly value?: string | undefined
}

export type RunEffect =
  /** A task has to be enqueued. The source's and the reduction's tasks have an empty value, and `value` may be a reference. */
  | { readonly kind: 'start'; readonly stage: number; readonly position: number; readonly value: string }
  /** The source, which waits, may emit further items. */
  | { readonly kind: 'credits' }
  /** A result has to be kept for the reduction. */
  | { readonly kind: 'result'; readonly value: string }
  /** An error has to be kept. */
  | { readonly kind: 'error'; readonly error: RunError }
  /** The tasks of the source and the stages in these queues, and the reduction if `reduce` is true, have to be cancelled. */
  | { readonly kind: 'cancel'; readonly queues: readonly string[]; readonly reduce: boolean; readonly stop: RunStop }
  | { readonly kind: 'ended' }

export interface RunStep {
  readonly model: RunModel
  readonly effects: readonly RunEffect[]
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** A copy of a model that one decision changes. */
export interface Draft {
  readonly run: Mutable<Omit<Run, 'source' | 'stages' | 'sections'>>
  readonly source: Mutable<RunSource>
  readonly stages: readonly Mutable<StageCounts>[]
  readonly sections: readonly (PipelineSection & Mutable<Omit<SectionCounts, 'batching'>>)[]
  readonly waiting: RunItem[][]
  readonly tasks: Set<string>
  readonly inputs: Map<string, string>
  readonly early: Map<string, string | undefined>
  readonly effects: RunEffect[]
}

/** Identifies a task of a run among the others. */
export function runTaskName(stage: number, position: number): string {
  return `${stage}.${position}`
}

export function draftOf({ run: given, waiting, tasks, inputs, early }: RunModel): Draft {
  const { source, stages, sections, ...run } = given
  return {
    run,
    source: { ...source },
    stages: stages.map((counts) => ({ ...counts })),
    sections: sectionsOf(run.settings).map((section, i) => ({ ...section, ...(sections[i] ?? NOT_ENTERED) })),
    waiting: waiting.map((items) => [...items]),
    tasks: new Set(tasks),
    inputs: new Map(inputs),
    early: new Map(early),
    effects: [],
  }
}

export const NOT_ENTERED: SectionCounts = { entered: 0, left: 0, batching: 0 }

export function stepOf(draft: Draft): RunStep {
  const { run, source, waiting, tasks, inputs, early, effects } = draft
  const stages = draft.stages.map((counts, i) => ({ ...counts, waiting: waiting[i]?.length ?? 0 }))
  const sections = draft.sections.map(({ entered, left, last }) => ({
    ...{ entered, left, batching: waiting[last]?.length ?? 0 },
  }))
  return { model: { run: { ...run, source, stages, sections }, waiting, tasks, inputs, early }, effects }
}

/** Starts a task of the run. */
export function start({ tasks, inputs, effects }: Draft, stage: number, position: number, value: string): void {
  const name = runTaskName(stage, position)
  const bytes = byteLength(value)
  const isKept = bytes > MAX_PASSED_BYTES
  tasks.add(name)
  if (isKept) inputs.set(name, value)
  effects.push({ kind: 'start', stage, position, value: isKept ? referenceTo(bytes) : value })
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
