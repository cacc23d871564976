// Reads the clock of the server that holds a key.
import { defineScript } from '../script.ts'

/**
 * - KEYS: any key on the server, which is not read.
 *
 * Returns the time in ms since 1970, with a fraction.
 */
export const readTime = defineScript({
  name: 'read-time',
  kind: 'reads',
  keys: ['anchor'],
  args: [],
  lua: `return redis.call('TIME')`,
  answer(reply) {
    const [seconds, micros] = reply as [string, string]
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  },
})
