// Reads the statuses of the last runs of a queue's schedules.
import type { TaskId, TaskStatus } from '@bullpen/contract'
import type { ScheduleRecord } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import { readTogether } from '../queries/read-together.ts'
import { addStateReads, decodeState, STATE_READS } from '../queries/task-state.ts'
import type { Commander } from '../scripts/script.ts'

/**
 * Returns the statuses by task id. A schedule without a run, and a run whose task has been deleted, have none. Takes one round trip, or
 * none if no schedule has a run.
 */
export async function lastStatuses(
  redis: Commander,
  keys: QueueKeys,
  records: readonly Pick<ScheduleRecord, 'queue' | 'lastRun'>[],
): Promise<ReadonlyMap<string, TaskStatus>> {
  const runs = records.flatMap(({ queue, lastRun }) => (lastRun === undefined ? [] : [{ queue, id: lastRun.id }]))
  if (runs.length === 0) return new Map()
  const answers = await readTogether(redis, (reads) => {
    for (const { id } of runs) addStateReads(reads, keys, id)
  })
  const entries = runs.flatMap(({ id, queue }, i): (readonly [TaskId, TaskStatus])[] => {
    const state = decodeState(id, queue, answers.slice(i * STATE_READS, (i + 1) * STATE_READS), () => undefined)
    return state === undefined ? [] : [[id, state.status]]
  })
  return new Map(entries)
}
