// Reads the tasks that a schedule has enqueued.
import type { BullmqBroker } from '@bullpen/bullmq'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import { SCHEDULE_LABELS } from '@bullpen/engine/internal'
import { work } from '../programs/catalogue.ts'

export interface StoredTick {
  /** The tick of the task, and when it was enqueued by Redis's clock, in ms since 1970. */
  readonly tick: number
  readonly enqueuedAt: number
}

/** Returns the tick of each stored task. The drill is too short for retention to remove any of them. */
export async function storedTicks(broker: BullmqBroker): Promise<readonly StoredTick[]> {
  const found = new Map<string, StoredTick>()
  for (const status of TASK_STATUSES) {
    let cursor: string | undefined
    do {
      const page = await broker.list({ queue: work.queue, status, limit: 200, cursor })
      for (const { id, meta, enqueuedAt } of page.tasks) {
        found.set(id, { tick: Date.parse(meta[SCHEDULE_LABELS.tick] ?? ''), enqueuedAt })
      }
      cursor = page.next
    } while (cursor !== undefined)
  }
  return [...found.values()]
}
