// Computes the figures of the drill `limit` from what its callers learned and from the tasks that are stored.
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { p99, rank } from '../ledger/ranks.ts'
import type { Call } from './caller.ts'
import type { LostReplies } from './flood.ts'
import type { RoomResult } from './room.ts'

export interface LimitLedger {
  /** The calls that have ended, which are all calls. */
  readonly calls: readonly Call[]
  /** The name of the call of each stored task, by the task's id. */
  readonly stored: ReadonlyMap<string, string>
  readonly faults: readonly LostReplies[]
  /** The highest number of tasks that were waiting or scheduled at the same time. */
  readonly mostTasks: number
  readonly room: RoomResult
}

export function limitFigures({ calls, stored, faults, mostTasks, room }: LimitLedger): Figures {
  const byName = new Map(calls.map((call) => [call.name, call]))
  const tasks = [...stored].map(([id, name]) => ({ id, call: byName.get(name) }))
  const count = (matches: (call: Call) => boolean): number => calls.filter(matches).length
  const accepted = calls.flatMap(({ outcome }) => (outcome.kind === 'accepted' ? [outcome.id] : []))
  const unknown = tasks.flatMap(({ id, call }) => (call !== undefined && isUnknown(call) ? [{ id, call }] : []))
  return {
    ...figuresOf({ accepted, ends: new Map(), completions: new Map(), effects: [], interruptions: [], exits: [] }),
    // No worker runs, so no task ends. An accepted task is lost if it does not exist.
    lost: accepted.filter((id) => !stored.has(id)).length,
    duplicated: tasks.length - new Set(stored.values()).size,
    mostTasks,
    refused: count(({ outcome }) => outcome.kind === 'refused'),
    unknownOutcomes: count(isUnknown),
    storedUnknown: unknown.length,
    storedUnexplained: tasks.filter(({ id, call }) => !explains(call, id)).length,
    storedUnnamed: unknown.filter(({ id, call }) => call.outcome.kind === 'unknown' && call.outcome.id !== id).length,
    faultsWithoutEffect: faults.filter(({ api, from, to }) =>
      unknown.every(({ call }) => call.api !== api || call.endedAt < from || call.endedAt > to),
    ).length,
    overtaken: room.lines.reduce((sum, line) => sum + overtakenIn(line, room.storedInOrder), 0),
    roomP50Ms: rounded(rank(room.releasesMs, 0.5)),
    roomP99Ms: rounded(p99(room.releasesMs)),
  }
}

function isUnknown({ outcome }: Call): boolean {
  return outcome.kind === 'unknown' || outcome.kind === 'no_response'
}

/** Returns whether a task may be stored after this call: the call has returned its id, or does not know whether it is stored. */
function explains(call: Call | undefined, id: string): boolean {
  if (call === undefined) return false
  return isUnknown(call) || (call.outcome.kind === 'accepted' && call.outcome.id === id)
}

/** Counts the callers in a line whose tasks were stored after the task of a caller behind them. */
function overtakenIn(line: readonly string[], storedInOrder: readonly string[]): number {
  const positions = line.map((id) => storedInOrder.indexOf(id))
  return positions.filter((position, i) => positions.slice(i + 1).some((later) => later < position)).length
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10
}
