// Writes responses to standard output, as text or as JSON, and remarks to standard error.
import type { Writable } from 'node:stream'
import { painter } from './colors.ts'
import type { Layout } from './columns.ts'
import { plain } from './format.ts'
import { jsonText } from './json-text.ts'
import { writeText } from './writing.ts'

interface OutputOptions {
  readonly stdout: Writable
  readonly stderr: Writable
  readonly json: boolean
  readonly now: () => number
}

const ERASE_LINE = '\r\u001b[2K'

export interface Output {
  readonly json: boolean
  /** Whether {@link Output.progress} prints anything. */
  readonly isLive: boolean
  /**
   * Prints a response as JSON if --json is set, and otherwise as lines of text. Resolves to false if the reader has closed the
   * pipe, as `head` does. @throws OutputError.
   */
  answer(answer: object, lines: (layout: Layout) => readonly string[]): Promise<boolean>
  /** Prints an error on standard error: as `{"error":…}` if --json is set, and otherwise as lines of text. */
  error(error: object, lines: readonly string[]): void
  /** Prints a remark on standard error, unless --json is set. */
  remark(text: string): void
  /**
   * Prints a progress line in place of the previous one, but only on a terminal. If `text` is omitted, erases the previous line.
   */
  progress(text?: string): void
}

export function createOutput({ stdout, stderr, json, now }: OutputOptions): Output {
  const paint = painter(stdout)
  const columns = terminalWidth(stdout)
  return {
    json,
    isLive: terminalWidth(stderr) !== undefined && !json,
    answer: (answer, lines) => {
      const all = json ? [jsonText(answer)] : lines({ now: now(), paint, columns })
      return writeText(stdout, all.map((line) => `${line}\n`).join(''))
    },
    error(error, lines) {
      stderr.write(json ? `${jsonText({ error })}\n` : `bullpen: ${lines.join('\n')}\n`)
    },
    remark(text) {
      if (!json) stderr.write(`${text}\n`)
    },
    progress(text = '') {
      const width = terminalWidth(stderr)
      if (width !== undefined && !json) stderr.write(`${ERASE_LINE}${plain(text, width - 1)}`)
    },
  }
}

/** Returns undefined if the stream is not a terminal. */
function terminalWidth(stream: Writable): number | undefined {
  return 'isTTY' in stream && stream.isTTY === true && 'columns' in stream ? Number(stream.columns) || 80 : undefined
}
