// What a script that changes a pipeline run returns (store/lua/includes/runs/run.lua).
import type { RunResult } from '@bullpen/contract'

/** The reply of such a script. `ended` is set if this call has ended the run; `items` counts items by stage and outcome. */
export type RunReply<More> = [
  ended: [result: RunResult, durationMs: number] | null,
  entries: Array<[id: string, text: string]>,
  more: More,
  items: Array<string | number>,
  incarnation?: string,
]

export interface CountedItems {
  /** The number of the stage, starting from 1. */
  readonly stage: number
  /** `dropped` means that the task is completed but has no output. */
  readonly outcome: 'completed' | 'dropped' | 'failed'
  readonly count: number
}

export interface RunChange {
  /** Set if this call has ended the run. */
  readonly ended: { readonly result: RunResult; readonly durationMs: number } | undefined
  /** Distinguishes the run from others that have had its id. '' if the call has changed nothing. */
  readonly incarnation: string
  /** The entries of the run's outbox that the caller has to deliver: their ids in the stream and their texts. */
  readonly entries: readonly (readonly [id: string, text: string])[]
  /** The items that have left a stage in this call. */
  readonly items: readonly CountedItems[]
}

export function runChange([ended, entries, , flat, incarnation = '']: RunReply<unknown>): RunChange {
  const items: CountedItems[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const [stage, outcome] = String(flat[i]).split(' ')
    items.push({ stage: Number(stage), outcome: outcome as CountedItems['outcome'], count: Number(flat[i + 1]) })
  }
  return { ended: ended === null ? undefined : { result: ended[0], durationMs: ended[1] }, entries, items, incarnation }
}
