// Counts the results: files, bytes, workers, and tasks that were started more than once.
import type { Digested } from './digest-all.ts'

export class Tally {
  files = 0
  bytes = 0
  /** The number of tasks that were started more than once. */
  startedAgain = 0
  /** The number of starts in addition to the first start of each task. */
  extraStarts = 0
  readonly workers = new Set<string>()
  readonly total: number

  constructor(total: number) {
    this.total = total
  }

  add({ bytes, starts, workers }: Digested): void {
    this.files += 1
    this.bytes += bytes
    this.startedAgain += starts > 1 ? 1 : 0
    this.extraStarts += starts - 1
    for (const worker of workers) this.workers.add(worker)
  }
}
