// Shows how far the work is: a bar on a terminal, plain lines elsewhere.
import type { Writable } from 'node:stream'
import { progressBar, progressLine, type Standing } from './report.ts'

/** A stream that may be a terminal. */
export type Screen = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export interface Progress {
  /** A line of its own, above the bar. */
  say(line: string): void
  /** Takes the bar away and shows no more. */
  end(): void
}

const BAR_EVERY_MS = 100
const LINE_EVERY_MS = 3_000
const ERASE_LINE = '\r\x1b[K'

/** Shows `standing()` until ended. NO_COLOR (no-color.org) and TERM=dumb are respected. */
export function showProgress(screen: Screen, env: NodeJS.ProcessEnv, standing: () => Standing): Progress {
  const bar = screen.isTTY === true && env['TERM'] !== 'dumb'
  const colour = !env['NO_COLOR']
  const draw = () =>
    screen.write(
      bar ? ERASE_LINE + progressBar(standing(), screen.columns ?? 80, colour) : `${progressLine(standing())}\n`,
    )
  const timer = setInterval(draw, bar ? BAR_EVERY_MS : LINE_EVERY_MS)
  if (bar) draw()
  return {
    say(line) {
      screen.write(`${bar ? ERASE_LINE : ''}${line}\n`)
      if (bar) draw()
    },
    end() {
      clearInterval(timer)
      if (bar) screen.write(ERASE_LINE)
    },
  }
}
