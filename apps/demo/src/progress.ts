// Shows the progress as one line that changes on a terminal, and as further lines elsewhere.
import type { Writable } from 'node:stream'

/** A stream that may be a terminal. */
export type Screen = Writable & { readonly isTTY?: boolean; readonly columns?: number }

export interface Progress {
  /** Prints a line above the progress. */
  print(line: string): void
  /** Erases the progress on a terminal, and stops. Elsewhere, if there were lines, prints a last one. */
  end(): void
}

const DRAW_EVERY_MS = 100
const LINE_EVERY_MS = 3_000
const ERASE_LINE = '\r\x1b[K'

/** Shows `line()` until `end()` is called. Respects TERM=dumb. */
export function showProgress(screen: Screen, env: NodeJS.ProcessEnv, line: () => string): Progress {
  const isTerminal = screen.isTTY === true && env['TERM'] !== 'dumb'
  let hasDrawn = false
  const draw = () => {
    hasDrawn = true
    // A line that fills the last column would make some terminals scroll.
    screen.write(isTerminal ? ERASE_LINE + line().slice(0, Math.max((screen.columns ?? 80) - 1, 0)) : `${line()}\n`)
  }
  const timer = setInterval(draw, isTerminal ? DRAW_EVERY_MS : LINE_EVERY_MS)
  if (isTerminal) draw()
  return {
    print(text) {
      screen.write(`${isTerminal ? ERASE_LINE : ''}${text}\n`)
      if (isTerminal) draw()
    },
    end() {
      clearInterval(timer)
      if (isTerminal) screen.write(ERASE_LINE)
      else if (hasDrawn) draw()
    },
  }
}
