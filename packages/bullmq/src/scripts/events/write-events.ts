// Adds what running attempts have reported to the stream of their queue's events.
import { addEvents } from '../includes/add-events.ts'
import { defineScript } from '../script.ts'

/** How long Redis remembers a process's last call, in ms. A reply that was lost is noticed much sooner. */
const REMEMBERED_MS = 60_000

/**
 * - KEYS: the number of this process's last call.
 * - ARGV: the prefix of the queue's keys, the number of this call, and a JSON array with one array for each task: its id, the token
 *   of its lock, and its events (../includes/add-events.ts).
 *
 * If an attempt has lost its lock, its events are dropped. A call that is sent again changes nothing. The script runs even if Redis is
 * full: the stream has a bound, and its oldest events make room for new ones.
 */
export const writeEvents = defineScript({
  name: 'write-events',
  kind: 'frees',
  keys: ['eventBatch'],
  args: ['base', 'number', 'tasks'],
  lua: `
local call = redis.call
if call('GET', eventBatch) == number then return end
call('SET', eventBatch, number, 'PX', ${REMEMBERED_MS})
for _, task in ipairs(cjson.decode(tasks)) do
  local id, token, events = unpack(task)
  if call('GET', base .. id .. ':lock') == token then${addEvents('id', 'base .. id')}
  end
end
`,
})
