// Writes answers to standard output, as lines for people or as JSON, to a reader who may leave.
import type { Writable } from 'node:stream'
import { painter } from './colors.ts'
import { plain } from './format.ts'
import type { Look } from './task-text.ts'

interface OutputOptions {
  readonly stdout: Writable
  readonly stderr: Writable
  readonly json: boolean
  readonly now: () => number
}

const CLEARED = '\r\u001b[2K'

export interface Output {
  readonly json: boolean
  /** The answer as it is with --json, and otherwise its lines. False when the reader has gone, as `head` does. */
  answer(answer: object, lines: (look: Look) => readonly string[]): Promise<boolean>
  /** A remark for people alone. */
  remark(text: string): void
  /** How far it is, for somebody who looks on: replaces what it said before; without a text it is gone. */
  progress(text?: string): void
}

export function outputOn({ stdout, stderr, json, now }: OutputOptions): Output {
  const paint = painter(stdout)
  const columns = widthOf(stdout)
  return {
    json,
    answer: (answer, lines) => write(stdout, json ? [JSON.stringify(answer)] : lines({ now: now(), paint, columns })),
    remark(text) {
      if (!json) stderr.write(`${text}\n`)
    },
    progress(text = '') {
      const width = widthOf(stderr)
      if (width !== undefined && !json) stderr.write(`${CLEARED}${plain(text, width - 1)}`)
    },
  }
}

/** Undefined for what is no terminal. */
function widthOf(stream: Writable): number | undefined {
  return 'isTTY' in stream && stream.isTTY === true && 'columns' in stream ? Number(stream.columns) || 80 : undefined
}

async function write(stream: Writable, lines: readonly string[]): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  stream.write(lines.map((line) => `${line}\n`).join(''), (error) => {
    if (error === null || error === undefined) resolve(true)
    else if (hasGone(error)) resolve(false)
    else reject(error)
  })
  return await promise
}

function hasGone(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED')
}
