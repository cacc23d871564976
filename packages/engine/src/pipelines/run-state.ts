// Decides how a pipeline run changes: when its source emits items, when a task of the run ends, when the run is stopped, and when a time
// limit passes.
//
// Every function is pure, and returns the changed run with what follows from the change. A task of a run is identified by its stage and
// a number: stage 0 is the source, whose tasks are its segments; the stages between are numbered from 1, and their tasks by the position
// of the item; the stage after the last one is the reduction, with one task. The set of tasks that have not ended is the only record of
// what has happened to an item, so that what is stored is bounded by the stages and not by the number of items: the end of a task that
// is not in the set is a duplicate, and changes nothing.
//
// The bounds, where `c` is a stage's concurrency and `b` its buffer:
//   - A stage has at most `c` tasks.
//   - A stage starts a task only if its tasks and the items that wait for the next stage are fewer than `c + b`.
//   - The source may emit an item only if fewer than the sum of all `c + b`, the window, are between it and the results.
// Only the results are put in order, so no stage holds up an item behind another one. The last of these bounds also limits how many
// results wait for an earlier one.
//
// The run keeps the input of a task that is too large to be passed on, until the task has ended and was counted. The task gets a reference
// (./run-task.ts), and each of its attempts reads the input from the run.
import type { MemberEnd, RunStopReason } from '@bullpen/contract'
import type { Emission, Run, RunError, RunSettings, RunSource, RunStop, StageCounts } from '../ports/broker/runs.ts'
import { MAX_PASSED_BYTES, referenceTo } from './kept-input.ts'

/** An item on its way. `value` is stored text that is not interpreted here. */
export interface RunItem {
  readonly position: number
  readonly value: string
}

export interface RunModel {
  readonly run: Run
  /** For each stage, the items that wait for it, the oldest first. */
  readonly waiting: readonly (readonly RunItem[])[]
  /** The tasks of the run that have not ended, as {@link runTaskName} returns them. */
  readonly tasks: ReadonlySet<string>
  /** The inputs of these tasks that are too large to be passed on, by the task's name. Their tasks get references instead. */
  readonly inputs: ReadonlyMap<string, string>
  /**
   * If the run is ordered, what has arrived at the end before an earlier item, by position: results, or undefined for an item that has
   * no result.
   */
  readonly early: ReadonlyMap<number, string | undefined>
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

/** How long after it was stopped a run ends at the latest, in ms. A task that has not reported its end by then is given up. */
export const FORCED_RUN_END_MS = 3_600_000

/** Identifies a task of a run among the others. */
export function runTaskName(stage: number, position: number): string {
  return `${stage}.${position}`
}

/** Returns how many items may be between the source and the results. */
export function windowOf({ stages }: Pick<RunSettings, 'stages'>): number {
  return stages.reduce((sum, { concurrency, buffer }) => sum + concurrency + buffer, 0)
}

/** Returns how many items the source may emit now. */
export function freeOf({ settings, source, left }: Pick<Run, 'settings' | 'source' | 'left'>): number {
  return windowOf(settings) - (source.emitted - left)
}

const NO_COUNTS: StageCounts = { waiting: 0, running: 0, completed: 0, dropped: 0, failed: 0 }

export function startRun(settings: RunSettings, now: number): RunStep {
  const source: RunSource = {
    state: 'active',
    segment: 1,
    fencingToken: 0,
    emitted: 0,
    digest: '',
    cursor: '',
    isExhausted: false,
    isWaiting: false,
  }
  const run: Run = {
    settings,
    state: 'running',
    createdAt: now,
    timeoutAt: now + settings.totalMs,
    source,
    stages: settings.stages.map(() => NO_COUNTS),
    left: 0,
    results: 0,
    resultBytes: 0,
    errors: 0,
    firstError: undefined,
    stopped: undefined,
    reduce: settings.reduce === undefined ? 'none' : 'pending',
    output: '',
    ended: undefined,
  }
  const waiting = settings.stages.map(() => [])
  const model = { run, waiting, tasks: new Set([runTaskName(0, 1)]), inputs: new Map(), early: new Map() }
  return { model, effects: [{ kind: 'start', stage: 0, position: 1, value: '' }] }
}

/**
 * Lets the source emit items, at most as many as {@link freeOf} has returned. An emission without values only reports that an attempt
 * has begun. `fenced` means that a later attempt has emitted items or that the segment has ended, and `stopped` that the source is
 * not needed any more.
 */
export function emitItems(model: RunModel, emission: Emission, now: number): RunStep | 'stopped' | 'fenced' {
  if (model.run.state !== 'running') return 'stopped'
  const { segment, fencingToken, from, values, digest, cursor, isLast } = emission
  const { source } = model.run
  const isCurrent = source.state === 'active' && segment === source.segment && fencingToken >= source.fencingToken
  if (!isCurrent || from > source.emitted) return 'fenced'
  return change(model, now, (draft) => {
    draft.source.fencingToken = fencingToken
    draft.source.isWaiting = false
    const fresh = values.slice(source.emitted - from)
    for (const value of fresh) draft.waiting[0]?.push({ position: draft.source.emitted++, value })
    if (fresh.length > 0) {
      draft.source.digest = digest
      draft.source.cursor = cursor
    }
    if (isLast && from + values.length === draft.source.emitted) draft.source.isExhausted = true
    draft.source.isWaiting = !draft.source.isExhausted && freeIn(draft) <= 0
  })
}

/** The end of a task of a run. `value` is its output, or undefined if it has none. Only a completed task has a value. */
export interface EndedRunTask {
  readonly stage: number
  readonly position: number
  readonly end: MemberEnd
  readonly value?: string | undefined
}

/** Records the ends of tasks. The end of a task that the run does not have, or that has ended before, changes nothing. */
export function endRunTasks(model: RunModel, ends: readonly EndedRunTask[], now: number): RunStep {
  if (!ends.some(({ stage, position }) => model.tasks.has(runTaskName(stage, position)))) return { model, effects: [] }
  return change(model, now, (draft) => {
    for (const ended of ends) {
      const name = runTaskName(ended.stage, ended.position)
      if (!draft.tasks.delete(name)) continue
      draft.inputs.delete(name)
      endTask(draft, ended, now)
    }
  })
}

/** Stops a run. A run that has ended, or that is stopping for another reason than `taken`, stays as it is. */
export function stopRun(model: RunModel, stop: RunStop): RunStep {
  return change(model, stop.at, (draft) => stopDraft(draft, stop))
}

/** Looks whether a time limit of the run has passed: its total timeout, or the limit after it was stopped. */
export function visitRun(model: RunModel, now: number): RunStep {
  const { state, stopped, timeoutAt, settings } = model.run
  if (state === 'ended') return { model, effects: [] }
  if (now >= timeoutAt && (stopped === undefined || stopped.reason === 'taken')) {
    return stopRun(model, { at: now, reason: 'run_timeout', by: `run ${settings.id}` })
  }
  if (stopped === undefined || stopped.reason === 'taken' || now < stopped.at + FORCED_RUN_END_MS) {
    return { model, effects: [] }
  }
  return change(model, now, ({ tasks, inputs, source, stages }) => {
    tasks.clear()
    inputs.clear()
    source.state = 'done'
    for (const counts of stages) counts.running = 0
  })
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

interface Draft {
  readonly run: Mutable<Omit<Run, 'source' | 'stages'>>
  readonly source: Mutable<RunSource>
  readonly stages: readonly Mutable<StageCounts>[]
  readonly waiting: RunItem[][]
  readonly tasks: Set<string>
  readonly inputs: Map<string, string>
  readonly early: Map<number, string | undefined>
  readonly effects: RunEffect[]
}

/** Makes a change to a copy of the model, and then starts what the change allows to start. */
function change(model: RunModel, now: number, act: (draft: Draft) => void): RunStep {
  if (model.run.state === 'ended') return { model, effects: [] }
  const { source, stages, ...run } = model.run
  const draft: Draft = {
    run,
    source: { ...source },
    stages: stages.map((counts) => ({ ...counts })),
    waiting: model.waiting.map((items) => [...items]),
    tasks: new Set(model.tasks),
    inputs: new Map(model.inputs),
    early: new Map(model.early),
    effects: [],
  }
  act(draft)
  advance(draft)
  finish(draft, now)
  for (const [i, counts] of draft.stages.entries()) counts.waiting = draft.waiting[i]?.length ?? 0
  const { waiting, tasks, inputs, early, effects } = draft
  return {
    model: { run: { ...draft.run, source: draft.source, stages: draft.stages }, waiting, tasks, inputs, early },
    effects,
  }
}

function endSegment({ run, source }: Draft, end: MemberEnd): void {
  source.isWaiting = false
  if (run.stopped !== undefined || source.isExhausted) source.state = 'done'
  else source.state = end === 'completed' ? 'parked' : 'failed'
}

function endTask(draft: Draft, ended: EndedRunTask, now: number): void {
  if (ended.stage === 0) endSegment(draft, ended.end)
  else if (ended.stage <= draft.stages.length) endItem(draft, ended, now)
  else {
    draft.run.reduce = ended.end === 'completed' ? 'completed' : 'failed'
    draft.run.output = ended.value ?? ''
  }
}

function endItem(draft: Draft, { stage, position, end, value }: EndedRunTask, now: number): void {
  const { run, stages } = draft
  const counts = stages[stage - 1]
  if (counts === undefined) return
  counts.running--
  // A task that ends after the run was stopped is awaited, but what it has done does not count.
  if (run.stopped !== undefined) return
  if (end !== 'completed') {
    counts.failed++
    failItem(draft, { stage, position, end }, now)
    return
  }
  counts.completed++
  if (value === undefined) {
    counts.dropped++
    leave(draft, position, undefined, now)
  } else if (stage < stages.length) draft.waiting[stage]?.push({ position, value })
  else leave(draft, position, value, now)
}

function failItem(draft: Draft, error: RunError, now: number): void {
  const { run, effects } = draft
  run.errors++
  run.firstError ??= error
  if (run.settings.onError === 'cancel') {
    stopDraft(draft, { at: now, reason: 'first_error', by: `run ${run.settings.id}` })
    return
  }
  if (run.errors <= run.settings.maxErrors) effects.push({ kind: 'error', error })
  leave(draft, error.position, undefined, now)
}

/** Lets an item leave the pipeline, with or without a result. If the run is ordered, the item waits until the earlier ones have left. */
function leave(draft: Draft, position: number, value: string | undefined, now: number): void {
  const { run, early } = draft
  if (!run.settings.ordered) {
    leaveNow(draft, value, now)
    return
  }
  early.set(position, value)
  while (run.stopped === undefined && early.has(run.left)) {
    const next = early.get(run.left)
    early.delete(run.left)
    leaveNow(draft, next, now)
  }
}

function leaveNow(draft: Draft, value: string | undefined, now: number): void {
  const { run, effects } = draft
  const { id, take, reduce } = run.settings
  const stop = (reason: RunStopReason): void => stopDraft(draft, { at: now, reason, by: `run ${id}` })
  run.left++
  if (value === undefined) return
  if (reduce !== undefined) {
    const bytes = run.resultBytes + byteLength(value)
    if (bytes > reduce.maxBytes) {
      stop('results_too_large')
      return
    }
    run.resultBytes = bytes
    effects.push({ kind: 'result', value })
  }
  run.results++
  if (run.results === take) stop('taken')
}

function stopDraft(draft: Draft, stop: RunStop): void {
  const { run, source, waiting, tasks, early, effects } = draft
  const { stopped, settings } = run
  const replaces = stopped?.reason === 'taken' && (stop.reason === 'cancelled' || stop.reason === 'run_timeout')
  if (stopped !== undefined && !replaces) return
  run.stopped = stop
  run.state = 'stopping'
  for (const items of waiting) items.length = 0
  early.clear()
  source.isWaiting = false
  if (source.state === 'parked') source.state = 'done'
  const reduction = runTaskName(waiting.length + 1, 0)
  const reduce = tasks.has(reduction)
  const hasItems = tasks.size > (reduce ? 1 : 0)
  const queues = hasItems ? [...new Set([settings.source.queue, ...settings.stages.map(({ queue }) => queue)])] : []
  if (hasItems || reduce) effects.push({ kind: 'cancel', queues, reduce, stop })
}

/** Starts as many items as the bounds allow, beginning with the last stage, which makes room for the others. */
function advance(draft: Draft): void {
  const { run, source, stages, waiting } = draft
  if (run.stopped !== undefined) return
  for (let i = stages.length - 1; i >= 0; i--) {
    for (;;) {
      const counts = stages[i]
      const { concurrency = 0, buffer = 0 } = run.settings.stages[i] ?? {}
      const outputs = waiting[i + 1]?.length ?? 0
      if (counts === undefined || counts.running >= concurrency || counts.running + outputs >= concurrency + buffer)
        break
      const item = waiting[i]?.shift()
      if (item === undefined) break
      counts.running++
      start(draft, i + 1, item.position, item.value)
    }
  }
  // A source that was held up begins again when half of the window is free, and not for each item.
  if (2 * freeIn(draft) < windowOf(run.settings)) return
  if (source.state === 'parked') {
    source.state = 'active'
    source.segment++
    source.fencingToken = 0
    start(draft, 0, source.segment, '')
  } else if (source.isWaiting) {
    source.isWaiting = false
    draft.effects.push({ kind: 'credits' })
  }
}

function start({ tasks, inputs, effects }: Draft, stage: number, position: number, value: string): void {
  const name = runTaskName(stage, position)
  const bytes = byteLength(value)
  const isKept = bytes > MAX_PASSED_BYTES
  tasks.add(name)
  if (isKept) inputs.set(name, value)
  effects.push({ kind: 'start', stage, position, value: isKept ? referenceTo(bytes) : value })
}

/** Starts the reduction once every result is in, and ends the run once it has no tasks any more. */
function finish(draft: Draft, now: number): void {
  const { run, source, tasks, effects } = draft
  if (tasks.size > 0 || run.state === 'ended') return
  const reason = run.stopped?.reason
  const isWhole = reason === 'taken' || (reason === undefined && source.state === 'done')
  if (isWhole && run.reduce === 'pending') {
    run.state = 'reducing'
    run.reduce = 'running'
    start(draft, draft.waiting.length + 1, 0, '')
    return
  }
  const isCompleted = isWhole && run.reduce !== 'failed'
  const result = isCompleted ? 'completed' : reason === 'cancelled' ? 'cancelled' : 'failed'
  run.state = 'ended'
  run.ended = { at: now, result }
  effects.push({ kind: 'ended' })
}

function freeIn({ run, source }: Draft): number {
  return freeOf({ settings: run.settings, source, left: run.left })
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
