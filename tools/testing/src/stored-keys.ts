// Lists the keys of a Redis server, with a connection of its own.
import { once } from 'node:events'
import { connect } from 'node:net'

/** Returns each matching key and, as a number in ms, how long it lives. The number is negative if the key does not expire. */
const KEYS_WITH_TIMES = `
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  found[#found + 1] = key
  found[#found + 1] = tostring(redis.call('PTTL', key))
end
return found`

/** Returns the names of all keys that match a pattern, and whether each of them expires. The server must not require a password. */
export async function storedKeys(url: string, pattern: string): Promise<ReadonlyMap<string, boolean>> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const command = (...words: string[]) =>
    `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`
  socket.write(command('EVAL', KEYS_WITH_TIMES, '0', pattern) + command('QUIT'))
  let reply = ''
  socket.setEncoding('utf8').on('data', (text) => {
    reply += text
  })
  // Redis closes the connection after QUIT.
  await once(socket, 'close')
  // A list of strings, each with a line for its length before it, and then the reply to QUIT.
  const texts = reply.split('\r\n').filter((line, i) => i > 0 && i % 2 === 0 && !line.startsWith('+'))
  const keys = new Map<string, boolean>()
  for (let i = 0; i + 1 < texts.length; i += 2) keys.set(texts[i] ?? '', Number(texts[i + 1]) >= 0)
  return keys
}
