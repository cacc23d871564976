// Counts a queue's dead tasks by fingerprint.

import type { TaskId } from '@bullpen/contract'
import type { FingerprintCount } from '@bullpen/engine/internal'
import { z } from 'zod'
import { parseJson } from '../../codec.ts'
import { defineScript } from '../script.ts'

const infoSchema = z.object({ state: z.string(), code: z.string(), message: z.string() })

/** The number of values that the script returns for each fingerprint. */
const FIELDS = 6

/**
 * - KEYS: the fingerprints.
 * - ARGV: the prefix of the fingerprints' sets, how many fingerprints to return.
 *
 * Returns the largest counts first, and equal counts by fingerprint. Takes one command for each fingerprint and three more for each
 * one that is returned, whatever the number of tasks.
 */
export const countFingerprints = defineScript({
  name: 'count-fingerprints',
  kind: 'reads',
  keys: ['fingerprints'],
  args: ['prefix', 'limit'],
  lua: `
local kinds, found = {}, {}
for _, fingerprint in ipairs(redis.call('HKEYS', fingerprints)) do
  local count = redis.call('ZCARD', prefix .. fingerprint)
  if count > 0 then kinds[#kinds + 1] = { fingerprint, count } end
end
table.sort(kinds, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
for i = 1, math.min(#kinds, tonumber(limit)) do
  local fingerprint, count = unpack(kinds[i])
  local set = prefix .. fingerprint
  local oldest, newest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
  local at = #found
  found[at + 1], found[at + 2], found[at + 3] = fingerprint, redis.call('HGET', fingerprints, fingerprint), count
  found[at + 4], found[at + 5], found[at + 6] = oldest[2], newest[2], newest[1]
end
return found
`,
  answer(reply): FingerprintCount[] {
    const flat = reply as (string | number)[]
    return Array.from({ length: flat.length / FIELDS }, (_, i) => {
      const [fingerprint, info, count, oldestAt, newestAt, newestId] = flat.slice(i * FIELDS, (i + 1) * FIELDS)
      const parsed = infoSchema.safeParse(parseJson(String(info)))
      const { state, code, message } = parsed.success ? parsed.data : { state: '', code: '', message: '' }
      return {
        fingerprint: String(fingerprint),
        state,
        code,
        message,
        count: Number(count),
        oldestAt: Number(oldestAt),
        newestAt: Number(newestAt),
        newestId: String(newestId) as TaskId,
      }
    })
  },
})
