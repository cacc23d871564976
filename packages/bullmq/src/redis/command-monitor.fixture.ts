// Reports each command that a Redis server runs. The `monitor` of ioredis fails if a command arrives together with the reply to MONITOR,
// which happens on a busy machine.
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import type { Redis } from 'ioredis'

/** `words` are the command and its arguments. `source` is the client's address, or `lua` if a script runs the command. */
export type OnCommand = (words: readonly string[], source: string) => void

const LINE = /^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/

/** Resolves once every further command is reported. `redis` names the server, which must not demand a password. */
export async function monitorCommands(redis: Redis, onCommand: OnCommand): Promise<{ readonly close: () => void }> {
  const socket = connect(redis.options.port ?? 6379, redis.options.host)
  const lines = createInterface({ input: socket })
  const started = once(lines, 'line')
  socket.write('MONITOR\r\n')
  const [reply] = (await started) as [string]
  if (reply !== '+OK') throw new Error(`MONITOR: ${reply}`)
  lines.on('line', (line) => {
    const [, source = '', words = ''] = LINE.exec(line) ?? []
    onCommand(
      [...words.matchAll(/"(?:\\.|[^"\\])*"/g)].map(([word]) => textOf(word)),
      source,
    )
  })
  return { close: () => socket.destroy() }
}

/** Redis quotes each word as C does. */
function textOf(quoted: string): string {
  const escaped = quoted.replaceAll(/\\x(..)/g, String.raw`\u00$1`).replaceAll(String.raw`\a`, String.raw`\u0007`)
  return JSON.parse(escaped) as string
}
