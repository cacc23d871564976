// Shows the progress as a bar on a terminal and as plain lines elsewhere.
import type { Writable } from 'node:stream'
import { type Counts, progressBar, progressLine } from './report.ts'

/** A stream that may be a terminal. */
export type Screen = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export interface Progress {
  /** Prints a line above the bar. */
  print(line: string): void
  /** Erases the bar and stops. */
  end(): void
}

const BAR_EVERY_MS = 100
const LINE_EVERY_MS = 3_000
const ERASE_LINE = '\r\x1b[K'

/** Shows `counts()` until `end()` is called. Respects NO_COLOR (no-color.org) and TERM=dumb. */
export function showProgress(screen: Screen, env: NodeJS.ProcessEnv, counts: () => Counts): Progress {
  const bar = screen.isTTY === true && env['TERM'] !== 'dumb'
  const colour = !env['NO_COLOR']
  const draw = () =>
    screen.write(bar ? ERASE_LINE + progressBar(counts(), screen.columns ?? 80, colour) : `${progressLine(counts())}\n`)
  const timer = setInterval(draw, bar ? BAR_EVERY_MS : LINE_EVERY_MS)
  if (bar) draw()
  return {
    print(line) {
      screen.write(`${bar ? ERASE_LINE : ''}${line}\n`)
      if (bar) draw()
    },
    end() {
      clearInterval(timer)
      if (bar) screen.write(ERASE_LINE)
    },
  }
}
