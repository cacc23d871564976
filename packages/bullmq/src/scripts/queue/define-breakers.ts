// Stores the circuit breakers that the catalogue of a worker contains.
import { OPEN_GATES } from '../../breakers/gate-steps.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the breakers.
 * - ARGV: the prefix of the queue's keys, '1' to replace the settings and to delete all other breakers, '' to store only missing ones,
 *   and then the services and their settings.
 *
 * Returns nothing.
 */
export const defineBreakersScript = defineScript({
  name: 'define-breakers',
  kind: 'frees',
  keys: ['stored'],
  args: ['base', 'replaces'],
  lua: `
local call = redis.call${OPEN_GATES}
local breakers, defined = open_gates(), {}
for i = 3, #ARGV, 2 do
  defined[ARGV[i]] = true
  if replaces == '1' or call('HEXISTS', stored, ARGV[i]) == 0 then breakers.define(ARGV[i], ARGV[i + 1]) end
end
if replaces == '1' then
  for _, service in ipairs(call('HKEYS', stored)) do
    if not defined[service] then breakers.remove(service) end
  end
end
`,
})
