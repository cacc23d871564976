// Watches the resident memory of a child process: V8's heap limit does not cover what lives outside its heap, such as buffers.
import { existsSync, readFileSync } from 'node:fs'

/** Bytes of a process's memory that are in RAM; undefined when the process is gone, or where it can't be read. */
export type ReadResident = (pid: number) => number | undefined

/** Linux shows it for any process, also while that process's event loop is blocked. Elsewhere the child reports it. */
export const canReadResident = existsSync('/proc/self/status')

export const readResident: ReadResident = (pid) => {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
  } catch {
    return undefined
  }
}

/** A handler can fill a gigabyte in half a second; one read takes about 20 µs. */
const POLL_MS = 20

/** V8's young generation and what allocators retain: resident memory beyond the limit that no handler uses. */
const SLACK_BYTES = 48 * 2 ** 20

export interface MemoryWatch {
  /** Starts to count, from what Node needs before any task. */
  start(): void
  /** An imported module took this much: the limit is not for code. */
  addToBaseline(moduleBytes: number): void
  /** What the child reports where the worker can't read it. A child in a loop reports nothing and is not watched. */
  report(residentBytes: number): void
  /** Whether more than half of the limit is used. */
  isHalfFull(): boolean
  stop(): void
}

/** Calls `onExceeded` once, with the bytes used. Without a limit nothing is watched. */
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
