// Gives an API process some of an API key's tokens.

import { TIME } from '../../store/scripts.ts'
import { TOKEN_BUCKET } from '../includes/token-bucket.ts'
import { defineScript } from '../script.ts'

export interface LeaseReply {
  readonly granted: number
  /** How many tokens are left in the bucket. */
  readonly left: number
}

/**
 * - KEYS: the API key's bucket.
 * - ARGV: the rate's number of tokens, its period (ms), and how many tokens the process needs now, needs at least, and would use
 *   soon.
 *
 * Grants the tokens that are needed now, or as many as there are. If there are fewer than the process needs at least, grants none.
 * Of the tokens that are then left, grants those that would be used soon, but at most half, so that other processes get some, too.
 * Once the bucket would be full again, Redis deletes it.
 */
export const leaseTokens = defineScript({
  name: 'lease-tokens',
  kind: 'frees',
  keys: ['bucket'],
  args: ['max', 'per', 'needed', 'least', 'ahead'],
  lua: `${TIME}${TOKEN_BUCKET}
local now = micros() / 1000
local tokens = tokens_in(redis.call('GET', bucket), now, tonumber(max), tonumber(per))
local whole = whole_tokens(tokens)
local granted = 0
if whole >= tonumber(least) then
  granted = math.min(tonumber(needed), whole)
  granted = granted + math.min(tonumber(ahead), math.floor((whole - granted) / 2))
  redis.call('SET', bucket, stored_bucket(tokens - granted, now), 'PX', per)
end
return { granted, string.format('%.9f', tokens - granted) }
`,
  answer(reply): LeaseReply {
    const [granted, left] = reply as [number, string]
    return { granted, left: Number(left) }
  },
})
