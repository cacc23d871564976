// Reads what bullpen top shows of the fleet at one moment.
import type { Client } from '@bullpen/client'
import type { FleetView, QueuePage, SlotView } from '@bullpen/contract'

export interface Snapshot {
  /** The time on Redis's clock. */
  readonly now: string
  readonly queues: QueuePage['queues']
  readonly workers: FleetView['workers']
  /** The slots that are running a task. */
  readonly running: readonly SlotView[]
}

interface SnapshotOptions {
  readonly queue?: string
  readonly signal?: AbortSignal
}

/** Sends three requests at once. @throws ProblemError, or the signal's reason if the signal aborts. */
export async function takeSnapshot(client: Client, options: SnapshotOptions): Promise<Snapshot> {
  const [{ now, queues }, { workers }, slots] = await Promise.all([
    client.queues(options),
    client.fleet(options),
    client.slots(options),
  ])
  return { now, queues, workers, running: slots.filter(({ task }) => task !== undefined) }
}
