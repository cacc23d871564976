// Draws lines in place on a terminal, reads single keys, and restores the terminal at the end, however the program ends.
import type { Readable, Writable } from 'node:stream'
import { type Paint, painter } from './colors.ts'

/** The part of the process that reports its signals and its exit. */
export interface ProcessEvents {
  on(event: ScreenEvent, listener: () => void): unknown
  off(event: ScreenEvent, listener: () => void): unknown
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type ScreenEvent = (typeof SIGNALS)[number] | 'exit'

export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

export interface Screen extends Disposable {
  readonly paint: Paint
  /** Aborts when the user presses q or Ctrl-C, when a signal asks the program to end, and when the terminal is gone. */
  readonly left: AbortSignal
  size(): ScreenSize
  /** Replaces what the screen shows. Does nothing if the terminal has not taken the previous lines yet. */
  draw(lines: readonly string[]): void
  /** Calls the listener whenever the size of the terminal changes. */
  onResize(listener: () => void): void
}

interface ScreenOptions {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly events: ProcessEvents
  /** The type of the terminal, from the environment. */
  readonly term: string | undefined
}

interface Terminal extends Writable {
  readonly columns?: number
  readonly rows?: number
}

const DEFAULT_SIZE: ScreenSize = { columns: 80, rows: 24 }

// Changes to the alternate screen, hides the cursor, and cuts lines off at the edge: the width of a character such as an emoji is known
// only to the terminal, and a line that it wraps would move all others.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const ERASE_TO_END_OF_LINE = '\u001b[K'
const ERASE_BELOW = '\u001b[J'

/** In raw mode, Ctrl-C is a character instead of a signal. */
const LEAVING_KEYS = ['q', 'Q', '\u0003']

/** Returns a function that opens the screen, or undefined if standard output is not a terminal that can be drawn on. */
export function screenOpener(options: ScreenOptions): (() => Screen) | undefined {
  const { stdout, term } = options
  const canDraw = 'isTTY' in stdout && stdout.isTTY === true && term !== 'dumb'
  return canDraw ? () => openScreen(options) : undefined
}

function openScreen({ stdin, stdout, events }: ScreenOptions): Screen {
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  const terminal: Terminal = stdout
  const resizeListeners: (() => void)[] = []
  let isWriting = false

  const onKey = (keys: Buffer | string): void => {
    if (LEAVING_KEYS.some((key) => String(keys).includes(key))) leave()
  }
  // Writing to a terminal is synchronous, so the terminal is restored even if an unexpected error ends the process.
  const restore = (): unknown => terminal.write(LEAVE)

  for (const signal of SIGNALS) events.on(signal, leave)
  events.on('exit', restore)
  terminal.on('error', leave)
  const closeKeys = readKeys(stdin, onKey)
  terminal.write(ENTER)

  return {
    paint: painter(terminal),
    left: leaving.signal,
    size: () => ({ columns: terminal.columns || DEFAULT_SIZE.columns, rows: terminal.rows || DEFAULT_SIZE.rows }),

    draw(lines) {
      if (isWriting || leaving.signal.aborted) return
      isWriting = true
      const text = lines.map((line) => `${line}${ERASE_TO_END_OF_LINE}`).join('\r\n')
      terminal.write(`${HOME}${text}${ERASE_BELOW}`, () => {
        isWriting = false
      })
    },

    onResize(listener) {
      resizeListeners.push(listener)
      terminal.on('resize', listener)
    },

    [Symbol.dispose]() {
      for (const signal of SIGNALS) events.off(signal, leave)
      events.off('exit', restore)
      for (const listener of resizeListeners) terminal.off('resize', listener)
      closeKeys()
      restore()
      terminal.off('error', leave)
    },
  }
}

/** Calls `onKey` with each key that is pressed, if standard input is a terminal. Returns a function that ends this. */
function readKeys(stdin: Readable, onKey: (keys: Buffer | string) => void): () => void {
  if (!('isTTY' in stdin && stdin.isTTY === true)) return () => {}
  const setRawMode = (isRaw: boolean): void => {
    if ('setRawMode' in stdin && typeof stdin.setRawMode === 'function') stdin.setRawMode(isRaw)
  }
  setRawMode(true)
  stdin.on('data', onKey)
  return () => {
    stdin.off('data', onKey)
    setRawMode(false)
    // A stream that is read keeps the process running.
    stdin.pause()
  }
}
