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
}

/** Unix time in ms, also where a drill has set the process's own clock. */
export function wallMs(): number {
  return Math.round(performance.timeOrigin + performance.now())
}

/** Each line is in the kernel's hands on return: SIGKILL does not take it back. Several processes may share a file. */
export function appendTo(file: string): (effect: Effect) => void {
  const descriptor = openSync(file, 'a')
  return ({ what, id, start, process, at }) => {
    writeSync(descriptor, `${what} ${id} ${start} ${process} ${at}\n`)
  }
}

/** @throws Error for a line that is none: a ledger with a hole proves nothing. */
export function readEffects(text: string): readonly Effect[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [what, id, start, process, at, ...more] = line.split(' ')
      const known = what === 'start' || what === 'signal' || what === 'end'
      if (!known || id === undefined || process === undefined || at === undefined || more.length > 0) {
        throw new Error(`the ledger of effects has a line that is none: ${line}`)
      }
      return { what, id, start: Number(start), process, at: Number(at) }
    })
}
