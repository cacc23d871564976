// Writes and reads the ledger of effects, which has one line for each start, signal and end of a handler. The file outlives the
// process that wrote it.
import { existsSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * - `start` and `end`: the handler has begun, and is about to return.
 * - `signal`: the handler's signal was aborted.
 * - `stop` and `pass`: the handler waits at the position that its input names, and has been let through.
 * - `failure`: the handler is about to throw.
 */
const WHAT = ['start', 'signal', 'stop', 'pass', 'failure', 'end'] as const
type What = (typeof WHAT)[number]

export interface Effect {
  readonly what: What
  readonly id: string
  readonly fencingToken: number
  /** The worker's name in the fleet. */
  readonly worker: string
  /** Unix time in ms. */
  readonly at: number
  /** Present only for signals: fractional ms on the monotonic clock that is shared by all processes of the machine. */
  readonly machineMs?: number
  /** The number of the task or the group that this task is for, if its input contains one. */
  readonly of?: number
}

const OPTIONAL = /^(machineMs|of)=[\d.]+$/

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
  return ({ what, id, fencingToken, worker, at, ...optional }) => {
    const more = Object.entries(optional).map(([name, value]) => ` ${name}=${value}`)
    writeSync(descriptor, `${what} ${id} ${fencingToken} ${worker} ${at}${more.join('')}\n`)
  }
}

/** Returns the text of a file that is still written, without the last line if that is incomplete. Returns '' if there is no file. */
export function wholeLines(file: string): string {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

/** @throws Error if a line is malformed, because an incomplete ledger proves nothing. */
export function readEffects(text: string): readonly Effect[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [word, id, fencingToken, worker, at, ...optional] = line.split(' ')
      const what = WHAT.find((each) => each === word)
      const isValid = optional.every((field) => OPTIONAL.test(field))
      if (what === undefined || id === undefined || worker === undefined || at === undefined || !isValid) {
        throw new Error(`malformed line in the ledger of effects: ${line}`)
      }
      return {
        what,
        id,
        fencingToken: Number(fencingToken),
        worker,
        at: Number(at),
        ...Object.fromEntries(optional.map((field) => field.split('=')).map(([name, value]) => [name, Number(value)])),
      }
    })
}
