// Writes and reads the ledger of effects, which has one line for each start, signal and end of a handler. The file outlives the
// process that wrote it.
import { openSync, writeSync } from 'node:fs'

export interface Effect {
  readonly what: 'start' | 'signal' | 'end'
  readonly id: string
  readonly fencingToken: number
  /** The worker's name in the fleet. */
  readonly worker: string
  /** Unix time in ms. */
  readonly at: number
  /** Present only for signals: fractional ms on the monotonic clock that is shared by all processes of the machine. */
  readonly machineMs?: number
}

/** Returns the Unix time in ms, even if a drill has shifted the clock of the process. */
export function wallMs(): number {
  return Math.round(performance.timeOrigin + performance.now())
}

/** Returns the time of the monotonic clock in ms, which is CLOCK_MONOTONIC on Linux. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/**
 * Returns a function that appends an effect to the file. When that function returns, the line has been written and will survive
 * SIGKILL. Several processes may share a file.
 */
export function appendTo(file: string): (effect: Effect) => void {
  const descriptor = openSync(file, 'a')
  return ({ what, id, fencingToken, worker, at, machineMs }) => {
    writeSync(
      descriptor,
      `${what} ${id} ${fencingToken} ${worker} ${at}${machineMs === undefined ? '' : ` ${machineMs}`}\n`,
    )
  }
}

/** @throws Error if a line is malformed, because an incomplete ledger proves nothing. */
export function readEffects(text: string): readonly Effect[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [what, id, fencingToken, worker, at, machineMs, ...more] = line.split(' ')
      const known = what === 'start' || what === 'signal' || what === 'end'
      if (!known || id === undefined || worker === undefined || at === undefined || more.length > 0) {
        throw new Error(`malformed line in the ledger of effects: ${line}`)
      }
      return {
        what,
        id,
        fencingToken: Number(fencingToken),
        worker,
        at: Number(at),
        ...(machineMs && { machineMs: Number(machineMs) }),
      }
    })
}
