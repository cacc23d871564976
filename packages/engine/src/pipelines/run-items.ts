// Decides what follows when an item has passed a stage: it waits for the next stage, or it leaves its section, and perhaps the pipeline.
import type { RunStopReason } from '@bullpen/contract'
import type { RunError, RunStop } from '../ports/broker/runs.ts'
import { byteLength, type Draft, type EndedRunTask, runTaskName } from './run-model.ts'

/** Records the end of a stage's task. */
export function endItem(draft: Draft, { stage, position, end, value }: EndedRunTask, now: number): void {
  const { run, stages, sections, waiting } = draft
  const counts = stages[stage - 1]
  const section = sections.findLastIndex(({ first }) => first <= stage)
  if (counts === undefined) return
  counts.running--
  // A task that ends after the run was stopped is awaited, but what it has done does not count.
  if (run.stopped !== undefined) return
  if (end !== 'completed') {
    counts.failed++
    failItem(draft, section, { stage, position, end }, now)
    return
  }
  counts.completed++
  if (value === undefined) counts.dropped++
  if (value === undefined || stage === sections[section]?.last) leave(draft, section, position, value, now)
  else waiting[stage]?.push({ position, value })
}

function failItem(draft: Draft, section: number, error: RunError, now: number): void {
  const { run, effects } = draft
  run.errors++
  run.firstError ??= error
  if (run.settings.onError === 'cancel') {
    stopDraft(draft, { at: now, reason: 'first_error', by: `run ${run.settings.id}` })
    return
  }
  if (run.errors <= run.settings.maxErrors) effects.push({ kind: 'error', error })
  leave(draft, section, error.position, undefined, now)
}

/** Lets an item leave its section, with or without a value. If the run is ordered, the item waits until the earlier ones have left. */
function leave(draft: Draft, section: number, position: number, value: string | undefined, now: number): void {
  const { run, early, sections } = draft
  const counts = sections[section]
  if (!run.settings.ordered || counts === undefined) {
    leaveNow(draft, section, position, value, now)
    return
  }
  const name = (at: number): string => runTaskName(section + 1, at)
  early.set(name(position), value)
  while (run.stopped === undefined && early.has(name(counts.left))) {
    const at = counts.left
    const next = early.get(name(at))
    early.delete(name(at))
    leaveNow(draft, section, at, next, now)
  }
}

function leaveNow(draft: Draft, section: number, position: number, value: string | undefined, now: number): void {
  const counts = draft.sections[section]
  if (counts === undefined) return
  counts.left++
  if (value === undefined) return
  // Behind a section, items wait for a batch, or they are results.
  const batching = draft.waiting[counts.last]
  if (batching === undefined) addResult(draft, value, now)
  else batching.push({ position, value })
}

/** Records an output of the last stage, or a batch of outputs. */
export function addResult(draft: Draft, value: string, now: number): void {
  const { run, effects } = draft
  const { id, take, reduce } = run.settings
  const stop = (reason: RunStopReason): void => stopDraft(draft, { at: now, reason, by: `run ${id}` })
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

/** Stops the run, unless it is stopping for another reason than `taken`. */
export function stopDraft(draft: Draft, stop: RunStop): void {
  const { run, source, stages, waiting, tasks, early, effects } = draft
  const { stopped, settings } = run
  const replaces = stopped?.reason === 'taken' && (stop.reason === 'cancelled' || stop.reason === 'run_timeout')
  if (stopped !== undefined && !replaces) return
  run.stopped = stop
  run.state = 'stopping'
  for (const items of waiting) items.length = 0
  early.clear()
  source.isWaiting = false
  if (source.state === 'parked') source.state = 'done'
  const reduction = runTaskName(stages.length + 1, 0)
  const reduce = tasks.has(reduction)
  const hasItems = tasks.size > (reduce ? 1 : 0)
  const queues = hasItems ? [...new Set([settings.source.queue, ...settings.stages.map(({ queue }) => queue)])] : []
  if (hasItems || reduce) effects.push({ kind: 'cancel', queues, reduce, stop })
}
