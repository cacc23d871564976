// Decides how a pipeline run changes: when its source emits items, when a task of the run ends, when the run is stopped, and when a time
// limit passes.
//
// Every function is pure, and returns the changed run with what follows from the change. A task of a run is identified by its stage and
// a number: stage 0 is the source, whose tasks are its segments; the stages between are numbered from 1, and their tasks by the position
// of the item; the stage after the last one is the reduction, with one task. The set of tasks that have not ended is the only record of
// what has happened to an item, so that what is stored is bounded by the stages and not by the number of items: the end of a task that
// is not in the set is a duplicate, and changes nothing.
//
// Batches divide the stages into sections (contract/src/pipeline/pipeline-sections.ts). Within a section, an item keeps its
// position. Items that have left a section wait for the stage behind it. A task of this stage starts with a full batch of them,
// whose position is its number, or with fewer if no further item can come. What the source emits are items, or batches if the
// first stage takes them.
//
// The bounds, where `c` is a stage's concurrency, `b` its buffer, and `n` the size of the batches behind the stage, or 1:
//   - A stage has at most `c` tasks.
//   - A stage starts a task only if its tasks and the items that wait for the next stage are fewer than `c + b + n - 1`. If all
//     of its tasks have ended, the items that wait are therefore either a full batch or leave room for another one.
//   - An item enters a section only if fewer than the section's window are in it or wait behind it for a batch. The window is
//     the sum of all `c + b`, plus `2 * (n - 1)`. If only a part of a batch is left in a section, at least half of its window
//     is free, which is when a source that waits goes on.
// Only batches and results are put in order, so no stage holds up an item behind another one. The last of these bounds also limits how
// many items wait for an earlier one at the end of their section.
//
// The run keeps the input of a task that is too large to be passed on, until the task has ended and was counted. The task gets a reference
// (./kept-input.ts), and each of its attempts reads the input from the run.
import type { MemberEnd } from '@bullpen/contract'
import { sectionsOf } from '@bullpen/contract/internal'
import type { Emission, Run, RunSettings, RunSource, RunStop, StageCounts } from '../ports/broker/runs.ts'
import { endItem, stopDraft } from './run-items.ts'
import {
  type Draft,
  draftOf,
  type EndedRunTask,
  NOT_ENTERED,
  type RunModel,
  type RunStep,
  runTaskName,
  stepOf,
} from './run-model.ts'
import { advance, finish, freeIn } from './run-progress.ts'

/** How long after it was stopped a run ends at the latest, in ms. A task that has not reported its end by then is given up. */
export const FORCED_RUN_END_MS = 3_600_000

/** Returns how many items, or batches if the first stage takes them, the source may emit now. */
export function freeOf({ settings, sections }: Pick<Run, 'settings' | 'sections'>): number {
  const { entered, left, batching } = sections[0] ?? NOT_ENTERED
  return (sectionsOf(settings)[0]?.window ?? 0) - (entered - left + batching)
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
    sections: sectionsOf(settings).map(() => NOT_ENTERED),
    results: 0,
    resultBytes: 0,
    errors: 0,
    firstError: undefined,
    stopped: undefined,
    reduce: settings.reduce === undefined ? 'none' : 'pending',
    output: '',
    ended: undefined,
  }
  const lists = settings.stages.length + (settings.resultBatch === undefined ? 0 : 1)
  const waiting = Array.from({ length: lists }, () => [])
  const model = { run, waiting, tasks: new Set([runTaskName(0, 1)]), inputs: new Map(), early: new Map() }
  return { model, effects: [{ kind: 'start', stage: 0, position: 1, value: '' }] }
}

/**
 * Lets the source emit items, at most as many values as {@link freeOf} has returned. An emission without values only reports that an
 * attempt has begun. `fenced` means that a later attempt has emitted items or that the segment has ended, and `stopped` that the source
 * is not needed any more.
 */
export function emitItems(model: RunModel, emission: Emission, now: number): RunStep | 'stopped' | 'fenced' {
  if (model.run.state !== 'running') return 'stopped'
  const { segment, fencingToken, from, values, count, digest, cursor, isLast } = emission
  const { source, settings } = model.run
  const isCurrent = source.state === 'active' && segment === source.segment && fencingToken >= source.fencingToken
  if (!isCurrent || from > source.emitted) return 'fenced'
  return change(model, now, (draft) => {
    draft.source.fencingToken = fencingToken
    draft.source.isWaiting = false
    const [first] = draft.sections
    // Only the source's last batch can be shorter.
    const fresh = values.slice(Math.ceil((source.emitted - from) / (settings.stages[0]?.batch ?? 1)))
    if (first === undefined) return
    for (const value of fresh) draft.waiting[0]?.push({ position: first.entered++, value })
    if (fresh.length > 0) {
      draft.source.emitted = from + count
      draft.source.digest = digest
      draft.source.cursor = cursor
    }
    if (isLast && from + count === draft.source.emitted) draft.source.isExhausted = true
    draft.source.isWaiting = !draft.source.isExhausted && freeIn(draft) <= 0
  })
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

/** Makes a change to a copy of the model, and then starts what the change allows to start. */
function change(model: RunModel, now: number, act: (draft: Draft) => void): RunStep {
  if (model.run.state === 'ended') return { model, effects: [] }
  const draft = draftOf(model)
  act(draft)
  advance(draft, now)
  finish(draft, now)
  return stepOf(draft)
}

function endTask(draft: Draft, ended: EndedRunTask, now: number): void {
  if (ended.stage === 0) endSegment(draft, ended.end)
  else if (ended.stage <= draft.stages.length) endItem(draft, ended, now)
  else {
    draft.run.reduce = ended.end === 'completed' || ended.end === 'cancelled' ? ended.end : 'failed'
    draft.run.output = ended.value ?? ''
  }
}

function endSegment({ run, source }: Draft, end: MemberEnd): void {
  source.isWaiting = false
  if (run.stopped !== undefined || source.isExhausted) source.state = 'done'
  else source.state = end === 'completed' ? 'parked' : 'failed'
}
