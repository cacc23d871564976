// Reads a queue's schedules: all of them, or those that are due.

import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/** A schedule as it is stored: the token of its last write, and its record as JSON. */
export interface StoredText {
  readonly token: string
  readonly record: string
}

/**
 * - KEYS: schedules, the times at which the leader has to look at them.
 * - ARGV: '' to read all schedules; otherwise, only those that are due within this time are read (ms).
 *
 * Returns the time on Redis's clock (ms since 1970) and the schedules.
 */
export const readSchedulesScript = defineScript({
  name: 'read-schedules',
  kind: 'reads',
  keys: ['schedules', 'scheduleTimes'],
  args: ['within'],
  lua: `${TIME}
local now = millis()
if within == '' then return { now, redis.call('HVALS', schedules) } end
local names = redis.call('ZRANGEBYSCORE', scheduleTimes, '-inf', whole(now + within), 'LIMIT', 0, 500)
if #names == 0 then return { now, {} } end
return { now, redis.call('HMGET', schedules, unpack(names)) }
`,
  answer(reply): { readonly now: number; readonly schedules: readonly StoredText[] } {
    const [now, texts] = reply as [number, readonly (string | null)[]]
    return { now, schedules: texts.flatMap((text) => (text === null ? [] : [split(text)])) }
  },
})

function split(text: string): StoredText {
  const space = text.indexOf(' ')
  return { token: text.slice(0, space), record: text.slice(space + 1) }
}
