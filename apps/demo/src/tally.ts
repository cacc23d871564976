// Counts what has come in: files, bytes, workers, and starts beyond the first.
import type { Digested } from './digest-all.ts'

export class Tally {
  files = 0
  bytes = 0
  /** Tasks that were started more than once. */
  startedAgain = 0
  /** Starts beyond each task's first. */
  extraStarts = 0
  readonly processes = new Set<string>()
  readonly total: number

  constructor(total: number) {
    this.total = total
  }

  add({ bytes, starts, processes }: Digested): void {
    this.files += 1
    this.bytes += bytes
    this.startedAgain += starts > 1 ? 1 : 0
    this.extraStarts += starts - 1
    for (const process of processes) this.processes.add(process)
  }
}
