// Watches the resident memory of a child process, because V8's heap limit does not cover memory outside its heap, such as
// buffers.
import { existsSync, readFileSync } from 'node:fs'

/**
 * Returns how many bytes of a process's memory are in RAM. Returns undefined if the process is gone, or on platforms where this
 * can't be read.
 */
export type ReadResident = (pid: number) => number | undefined

/**
 * Whether the worker can read a child's memory. On Linux, the worker can, even while the child's event loop is blocked. On other
 * platforms, the child reports its memory.
 */
export const canReadResident = existsSync('/proc/self/status')

export const readResident: ReadResident = (pid) => {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
  } catch {
    return undefined
  }
}

/** The interval between reads. A handler can fill a gigabyte in half a second, and one read takes about 20 µs. */
const POLL_MS = 20

/**
 * How far resident memory may exceed the limit. This allows for memory that handlers do not use themselves, such as V8's young
 * generation and memory that allocators retain.
 */
const SLACK_BYTES = 48 * 2 ** 20

export interface MemoryWatch {
  /** Starts watching. The memory that Node needs before any task is the baseline, which does not count towards the limit. */
  start(): void
  /** Adds the size of an imported module to the baseline, because the limit does not apply to code. */
  addToBaseline(moduleBytes: number): void
  /**
   * Records how much memory the child itself reports, on platforms where the worker can't read the child's memory. A child that is
   * stuck in a loop can't report, so its memory is not watched.
   */
  report(residentBytes: number): void
  /** Returns whether more than half of the limit is used. */
  isHalfFull(): boolean
  stop(): void
}

/**
 * Watches a child's memory. If the child exceeds its limit, calls `onExceeded` once with the number of bytes used. Does nothing
 * if there is no limit.
 */
export function watchMemory(
  limitBytes: number | undefined,
  read: () => number | undefined,
  onExceeded: (usedBytes: number) => void,
): MemoryWatch {
  let baseline: number | undefined
  let usedBytes = 0
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearInterval(timer)
  const report = (residentBytes: number): void => {
    baseline ??= residentBytes
    usedBytes = residentBytes - baseline
    if (limitBytes === undefined || usedBytes <= limitBytes + SLACK_BYTES) return
    stop()
    onExceeded(usedBytes)
  }
  const poll = (): void => {
    const residentBytes = read()
    if (residentBytes !== undefined) report(residentBytes)
  }
  return {
    start() {
      if (limitBytes === undefined) return
      poll()
      timer = setInterval(poll, POLL_MS)
    },
    addToBaseline(moduleBytes) {
      if (baseline !== undefined) baseline += Math.max(0, moduleBytes)
    },
    report,
    isHalfFull() {
      if (limitBytes === undefined) return false
      poll()
      return usedBytes > limitBytes / 2
    },
    stop,
  }
}
