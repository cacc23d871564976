// The watch on a child's resident memory: what lives outside V8's heap, such as buffers, no heap limit holds.
import { existsSync, readFileSync } from 'node:fs'

/** Bytes of a process's memory that are in RAM; undefined when it is gone. Where it can't be looked up the child says it. */
export type ReadResident = (pid: number) => number | undefined

/** Linux says it of any process, also of one whose event loop stands still. */
export const canReadResident = existsSync('/proc/self/status')

export const readResident: ReadResident = (pid) => {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
  } catch {
    return undefined
  }
}

/** Short, since a handler can fill a gigabyte in half a second; looking takes some 20 µs. */
const LOOK_EVERY_MS = 20

/** V8's young generation and what allocators keep: resident memory beyond the limit that no handler holds on to. */
const SLACK_BYTES = 48 * 2 ** 20

export interface MemoryWatch {
  /** From here on the child's own memory counts, beyond what Node needs before any task. */
  began(): void
  /** A module that it imported took so much: code is not what a limit is for. */
  needs(moduleBytes: number): void
  /** What the child itself says, where it can't be looked up. A child in a loop says nothing, and is not watched then. */
  told(residentBytes: number): void
  /** More than half of the limit is taken. */
  isHalfFull(): boolean
  stop(): void
}

/** Calls `exceeded` once, with what was seen in bytes. Without a limit nothing is watched. */
export function watchMemory(
  limitBytes: number | undefined,
  look: () => number | undefined,
  exceeded: (takenBytes: number) => void,
): MemoryWatch {
  let baseline: number | undefined
  let last = 0
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearInterval(timer)
  const told = (residentBytes: number): void => {
    baseline ??= residentBytes
    last = residentBytes - baseline
    if (limitBytes === undefined || last <= limitBytes + SLACK_BYTES) return
    stop()
    exceeded(last)
  }
  const lookNow = (): void => {
    const residentBytes = look()
    if (residentBytes !== undefined) told(residentBytes)
  }
  return {
    began() {
      if (limitBytes === undefined) return
      lookNow()
      timer = setInterval(lookNow, LOOK_EVERY_MS)
    },
    needs(moduleBytes) {
      if (baseline !== undefined) baseline += Math.max(0, moduleBytes)
    },
    told,
    isHalfFull() {
      if (limitBytes === undefined) return false
      lookNow()
      return last > limitBytes / 2
    },
    stop,
  }
}
