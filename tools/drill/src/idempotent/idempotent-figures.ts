// Computes the figures of the drill `idempotent` from the responses that its callers got.
import { isFinal, type TaskRecord } from '@bullpen/contract'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import type { AcceptedResponse } from './callers.ts'

/** What the callers of one key saw. */
export interface KeyResult {
  readonly responses: readonly AcceptedResponse[]
  /** The callers without an accepted response. */
  readonly unanswered: number
  /** The requests after which the caller did not know whether the task was stored. */
  readonly unknown: number
  /** The faults of processes that had no pending request. */
  readonly faultsWithoutEffect: number
  /** The task that the first accepted response names. */
  readonly task: TaskRecord | undefined
}

/** Computes the figures. `tasks` is the number of stored tasks, and `completions` is how often each was recorded as completed. */
export function idempotentFigures(
  results: readonly KeyResult[],
  tasks: number,
  completions: ReadonlyMap<string, number>,
): Figures {
  const records = results.flatMap(({ task }) => (task !== undefined && isFinal(task.status) ? [task] : []))
  const ledger = {
    accepted: records.map(({ id }) => id),
    ends: new Map(records.map((record) => [record.id, record])),
    completions,
    effects: [],
    interruptions: [],
    exits: [],
  }
  const figures = figuresOf(ledger)
  const sum = (count: (result: KeyResult) => number) => results.reduce((total, result) => total + count(result), 0)
  return {
    ...figures,
    lost: results.length - records.length,
    // Each key may have stored only one task.
    duplicated: figures.duplicated + Math.max(0, tasks - results.length),
    responses: sum(({ responses }) => responses.length),
    differentResponses: sum(
      ({ responses: [first, ...others] }) => others.filter(({ body }) => body !== first?.body).length,
    ),
    firstResponsesRepeated: sum(({ responses }) =>
      Math.max(0, responses.filter(({ isReplayed }) => !isReplayed).length - 1),
    ),
    unanswered: sum(({ unanswered }) => unanswered),
    unknownOutcomes: sum(({ unknown }) => unknown),
    faultsWithoutEffect: sum((result) => result.faultsWithoutEffect),
  }
}
