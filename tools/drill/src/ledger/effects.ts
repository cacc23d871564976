// The ledger of effects: one line for each start, signal and end of a handler, appended to a file that outlives whoever wrote it.
import { openSync, writeSync } from 'node:fs'

export interface Effect {
  readonly what: 'start' | 'signal' | 'end'
  readonly id: string
  /** The number of the task's start. */
  readonly start: number
  /** The worker process, by its name in the fleet. */
  readonly process: string
  /** Unix time in ms. */
  readonly at: number
  /** Of signals: ms, in fractions, by the clock that all processes of the machine share and nobody sets. */
  readonly machineMs?: number
}

/** Unix time in ms, also where a drill has set the process's own clock. */
export function wallMs(): number {
  return Math.round(performance.timeOrigin + performance.now())
}

/** CLOCK_MONOTONIC, on Linux. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Each line is in the kernel's hands on return: SIGKILL does not take it back. Several processes may share a file. */
export function appendTo(file: string): (effect: Effect) => void {
  const descriptor = openSync(file, 'a')
  return ({ what, id, start, process, at, machineMs }) => {
    writeSync(descriptor, `${what} ${id} ${start} ${process} ${at}${machineMs === undefined ? '' : ` ${machineMs}`}\n`)
  }
}

/** @throws Error for a line that is none: a ledger with a hole proves nothing. */
export function readEffects(text: string): readonly Effect[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [what, id, start, process, at, machineMs, ...more] = line.split(' ')
      const known = what === 'start' || what === 'signal' || what === 'end'
      if (!known || id === undefined || process === undefined || at === undefined || more.length > 0) {
        throw new Error(`the ledger of effects has a line that is none: ${line}`)
      }
      return {
        what,
        id,
        start: Number(start),
        process,
        at: Number(at),
        ...(machineMs && { machineMs: Number(machineMs) }),
      }
    })
}
