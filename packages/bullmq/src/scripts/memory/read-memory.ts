// Reads how much memory Redis uses, and counts the producers that share what is left.

import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

export interface MemoryReply {
  /** The output of `INFO memory`, or '' if the Redis user is not permitted to run INFO. */
  readonly info: string
  /** How many producers have called this script within the last `silence` ms, including this one. */
  readonly producers: number
  /** Whether this is the producer's first call within the last `silence` ms. */
  readonly isNew: boolean
}

/**
 * - KEYS: the producers, a sorted set.
 * - ARGV: this producer's id, the silence after which a producer no longer counts (ms).
 *
 * Records that this producer is alive. In a cluster, the reply describes the node that holds the key.
 */
export const readMemory = defineScript({
  name: 'read-memory',
  kind: 'frees',
  keys: ['producers'],
  args: ['producer', 'silence'],
  lua: `${TIME}
local now = millis()
redis.call('ZREMRANGEBYSCORE', producers, '-inf', whole(now - silence))
local added = redis.call('ZADD', producers, whole(now), producer)
redis.call('PEXPIRE', producers, silence)
local info = redis.pcall('INFO', 'memory')
return { type(info) == 'string' and info or '', redis.call('ZCARD', producers), added }
`,
  answer(reply): MemoryReply {
    const [info, producers, added] = reply as [string, number, number]
    return { info, producers, isNew: added === 1 }
  },
})
