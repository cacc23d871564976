// Runs as many workers as an autoscaler asks for, as a Deployment of Kubernetes does: it starts them at once, and ends the
// newest first, each with SIGTERM.
import type { WorkerProcess } from '../environment/fleet.ts'
import type { Exit } from '../ledger/ledger.ts'

export interface Replicas {
  /** The number of workers that were asked for. Draining workers do not count. */
  readonly count: number
  /** How many of these are fetching tasks, and how many others are draining. */
  running(): number
  draining(): number
  /** The exits of the workers that were told to end. */
  readonly exits: readonly Exit[]
  /** The metrics of all workers that have not exited. */
  urls(): readonly string[]
  scaleTo(count: number): void
  /** Waits until every worker has started, and every worker that was told to end has exited. */
  settled(): Promise<void>
}

/** `changed` is called when a worker has started or exited. A worker is killed after `killAfterMs`. */
export function createReplicas(options: {
  readonly start: () => Promise<WorkerProcess>
  readonly killAfterMs: number
  readonly changed: () => void
}): Replicas {
  const { start, killAfterMs, changed } = options
  const starts: Promise<WorkerProcess>[] = []
  const running = new Set<WorkerProcess>()
  const draining = new Set<WorkerProcess>()
  const exits: Exit[] = []
  const endings: Promise<void>[] = []

  const add = (): void => {
    const started = start().then((worker) => {
      running.add(worker)
      changed()
      return worker
    })
    starts.push(started)
  }
  const end = async (starting: Promise<WorkerProcess>): Promise<void> => {
    const worker = await starting
    running.delete(worker)
    draining.add(worker)
    exits.push(await worker.end(killAfterMs))
    draining.delete(worker)
    changed()
  }
  return {
    get count() {
      return starts.length
    },
    running: () => running.size,
    draining: () => draining.size,
    exits,
    urls: () => [...running, ...draining].map(({ url }) => url),
    scaleTo(count) {
      while (starts.length < count) add()
      for (const removed of starts.splice(count).reverse()) endings.push(end(removed))
    },
    async settled() {
      await Promise.all([...starts, ...endings])
    },
  }
}
