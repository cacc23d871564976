// Applies a command to an API key's rate.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the rates that commands have set, by the API key's name.
 * - ARGV: the name, the command's sequence number, the rate ('' if the API's own limit applies again).
 *
 * Returns nothing. An older command never overwrites a newer one.
 */
export const applyEnqueueRate = defineScript({
  name: 'apply-enqueue-rate',
  kind: 'frees',
  keys: ['enqueueRates'],
  args: ['apiKeyName', 'sequence', 'rate'],
  lua: `
local newest = string.match(redis.call('HGET', enqueueRates, apiKeyName) or '0', '^%d+')
if tonumber(newest) < tonumber(sequence) then redis.call('HSET', enqueueRates, apiKeyName, sequence .. ' ' .. rate) end
`,
})
