// Streams that record what is written to them, either as a pipe or as a terminal, and a function that runs the program on them.
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { FAKE_KEY } from './fake-api.fixture.ts'
import { bullpen } from './program.ts'

export class Capture extends Writable {
  text = ''
  override _write(chunk: Buffer, _: string, done: () => void) {
    this.text += chunk
    done()
  }
}

export const terminal = (columns = 80) =>
  Object.assign(new Capture(), { isTTY: true, columns, getColorDepth: WriteStream.prototype.getColorDepth })

interface Streams {
  readonly stdout?: Capture
  readonly stderr?: Capture
  readonly env?: NodeJS.ProcessEnv
  readonly stdin?: Readable
  readonly events?: EventEmitter
}

/** Runs the program in this process, which is faster than starting one. */
export async function run(api: { readonly url: string }, args: readonly string[], streams: Streams = {}) {
  const { stdout = new Capture(), stderr = new Capture(), env = { BULLPEN_BY: 'ann' } } = streams
  const { stdin = Readable.from([]), events = new EventEmitter() } = streams
  const all = { BULLPEN_API: api.url, BULLPEN_KEY: FAKE_KEY, ...env }
  const code = await bullpen({ argv: args, env: all, stdin, stdout, stderr, events, now: Date.now })
  return { code, out: stdout.text, err: stderr.text }
}
