// Reads one page of the tasks that wait in the lanes of a queue.
import type { QueueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { listLanesScript } from '../store/scripts.ts'

/** After which task a page begins. The lanes are read in the order in which they received their first task. */
export interface LanePosition {
  /** The lane's number in that order. */
  readonly lane: number
  readonly last: string
  /** The task's score, if it has a priority, or else the number of the lane's tasks up to and including it. */
  readonly score?: number | undefined
  readonly passed?: number | undefined
}

export interface LanesPage {
  readonly ids: readonly string[]
  /** The position of the last of the ids. Undefined if there are none. */
  readonly at: LanePosition | undefined
}

/** Reads `limit` tasks, or fewer if there are no more, in one round trip. */
export async function readLanesPage(
  redis: Commander,
  { lanes, base }: Pick<QueueKeys, 'lanes' | 'base'>,
  after: LanePosition | undefined,
  limit: number,
): Promise<LanesPage> {
  const from = {
    after: after?.lane ?? '',
    last: after?.last ?? '',
    score: after?.score ?? '',
    passed: after?.passed ?? '',
  }
  const [ids, lane, last, score, passed] = await runScript(redis, listLanesScript, { lanes }, { base, ...from, limit })
  if (lane === '') return { ids, at: undefined }
  const position = score === '' ? { passed: Number(passed) } : { score: Number(score) }
  return { ids, at: { lane: Number(lane), last, ...position } }
}
