// Applies the retry budget of each definition in the memory of one process.
import type { AttemptResult } from '../ports/attempt-result.ts'
import {
  admitRetry,
  type BudgetDecision,
  type BudgetUse,
  countAttempt,
  endRetry,
  type HeldRetry,
  type MovedRetry,
  unusedBudget,
} from './retry-budget.ts'

export class RetryBudgets {
  readonly #uses = new Map<string, BudgetUse>()
  readonly #isHeld: (retry: HeldRetry) => boolean
  readonly #move: (retry: MovedRetry) => void

  /** `isHeld` returns whether a task still waits for its slot. `move` makes a task due earlier. */
  constructor(isHeld: (retry: HeldRetry) => boolean, move: (retry: MovedRetry) => void) {
    this.#isHeld = isHeld
    this.#move = move
  }

  /** Takes the end of an attempt into account. Returns when its task is retried, or undefined if it is not. */
  ended({ event, verdict, budget, totalTimeoutAt = 'none' }: AttemptResult, now: number): number | undefined {
    const { task, id, attempt } = event
    const backoffEndsAt = verdict.kind === 'retrying' ? now + verdict.delayMs : undefined
    const isEnd = verdict.kind === 'completed' || verdict.kind === 'dead'
    if (budget === undefined || (backoffEndsAt === undefined && !isEnd)) return backoffEndsAt
    const use = countAttempt(this.#uses.get(task) ?? unusedBudget(now, budget), now)
    this.#uses.set(task, use)
    if (backoffEndsAt !== undefined) {
      const admitted = admitRetry(use, { id, backoffEndsAt, totalTimeoutAt }, now, budget, this.#isHeld)
      this.#carryOut(task, admitted)
      return admitted.startsAt
    }
    if (isEnd && attempt > 1) this.#carryOut(task, endRetry(use, verdict.kind, now, budget, this.#isHeld))
    return undefined
  }

  /** Returns how many retries of a definition are held. */
  held(task: string, now: number): number {
    const held = this.#uses.get(task)?.held ?? []
    return held.filter((each) => each.slotAt > now && this.#isHeld(each)).length
  }

  #carryOut(task: string, { use, moved }: BudgetDecision): void {
    this.#uses.set(task, use)
    for (const each of moved) this.#move(each)
  }
}
