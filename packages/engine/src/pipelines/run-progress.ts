// Decides what a pipeline run may do next: form batches, start items, let its source go on, reduce its results, and end.
import { batchSize, stageRoom } from '@bullpen/contract/internal'
import { batchText } from '../task/payload/value-text.ts'
import { addResult } from './run-items.ts'
import { type Draft, type RunItem, start } from './run-model.ts'

/** Starts as many items as the bounds allow, beginning with the last stage, which makes room for the others. */
export function advance(draft: Draft, now: number): void {
  const { run, stages, sections } = draft
  for (;;) {
    const result = run.stopped === undefined ? takeBatch(draft, stages.length + 1, sections.length - 1) : undefined
    if (result === undefined) break
    addResult(draft, result, now)
  }
  if (run.stopped !== undefined) return
  for (let stage = stages.length; stage >= 1; stage--) startItems(draft, stage)
  resumeSource(draft)
}

/** Returns how many of its own items are in the section, or wait behind it for a batch. */
function heldBy({ sections, waiting }: Draft, section: number): number {
  const { entered = 0, left = 0, last = 0 } = sections[section] ?? {}
  return entered - left + (waiting[last]?.length ?? 0)
}

/** Returns how many items or batches the source may emit now. */
export function freeIn(draft: Draft): number {
  return (draft.sections[0]?.window ?? 0) - heldBy(draft, 0)
}

function startItems(draft: Draft, stage: number): void {
  const { run, stages, waiting } = draft
  const counts = stages[stage - 1]
  if (counts === undefined) return
  const { concurrency = 0 } = run.settings.stages[stage - 1] ?? {}
  const room = stageRoom(run.settings, stage) - (waiting[stage]?.length ?? 0)
  while (counts.running < Math.min(concurrency, room)) {
    const item = nextItem(draft, stage)
    if (item === undefined) return
    counts.running++
    start(draft, stage, item.position, item.value)
  }
}

/** Returns the next item for a stage, or undefined if none may start. A batch enters the stage's section when it starts. */
function nextItem(draft: Draft, stage: number): RunItem | undefined {
  const at = draft.sections.findIndex(({ first }) => first === stage)
  const section = draft.sections[at]
  if (at < 1 || section === undefined) return draft.waiting[stage - 1]?.shift()
  if (heldBy(draft, at) >= section.window) return undefined
  const value = takeBatch(draft, stage, at - 1)
  return value === undefined ? undefined : { position: section.entered++, value }
}

/**
 * Takes a batch from the items that wait for this stage, if it is full or if no item can come any more. `before` is the section before
 * the stage.
 */
function takeBatch(draft: Draft, stage: number, before: number): string | undefined {
  const items = draft.waiting[stage - 1] ?? []
  const size = batchSize(draft.run.settings, stage) ?? 0
  if (items.length === 0 || (items.length < size && !isEmptied(draft, before))) return undefined
  return batchText(items.splice(0, size).map(({ value }) => value))
}

/** Whether every item that will ever enter this section has left it. */
function isEmptied(draft: Draft, section: number): boolean {
  const { source, sections, waiting } = draft
  const { entered = 0, left = 0, first = 1 } = sections[section] ?? {}
  if (entered > left) return false
  if (section === 0) return source.isExhausted || source.state === 'failed'
  return waiting[first - 1]?.length === 0 && isEmptied(draft, section - 1)
}

/** Lets a source that was held up go on when half of the window is free, and not for each item. */
function resumeSource(draft: Draft): void {
  const { source, sections, effects } = draft
  if (2 * freeIn(draft) < (sections[0]?.window ?? 0)) return
  if (source.state === 'parked') {
    source.state = 'active'
    source.segment++
    source.fencingToken = 0
    start(draft, 0, source.segment, '')
  } else if (source.isWaiting) {
    source.isWaiting = false
    effects.push({ kind: 'credits' })
  }
}

/** Starts the reduction once every result is in, and ends the run once it has no tasks any more. */
export function finish(draft: Draft, now: number): void {
  const { run, source, stages, tasks, effects } = draft
  if (tasks.size > 0 || run.state === 'ended') return
  const reason = run.stopped?.reason
  const isWhole = reason === 'taken' || (reason === undefined && source.state === 'done')
  if (isWhole && run.reduce === 'pending') {
    run.state = 'reducing'
    run.reduce = 'running'
    start(draft, stages.length + 1, 0, '')
    return
  }
  const isCompleted = isWhole && (run.reduce === 'none' || run.reduce === 'completed')
  const result = isCompleted ? 'completed' : reason === 'cancelled' ? 'cancelled' : 'failed'
  run.state = 'ended'
  run.ended = { at: now, result }
  effects.push({ kind: 'ended' })
}
