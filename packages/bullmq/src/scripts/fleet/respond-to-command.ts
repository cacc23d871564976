// Stores a worker's response to a command.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the command, the worker's inbox.
 * - ARGV: the channel of responses, the command's id, the worker, and the outcome and detail as a JSON object without the closing
 *   brace.
 *
 * Only a worker's first response is stored. Returns nothing.
 */
export const respondToCommand = defineScript({
  name: 'respond-to-command',
  kind: 'frees',
  keys: ['command', 'inbox'],
  args: ['channel', 'id', 'worker', 'outcome'],
  lua: `${TIME}
redis.call('ZREM', inbox, id)
if redis.call('HGET', command, 'response:' .. worker) ~= 'pending' then return end
redis.call('HSET', command, 'response:' .. worker, outcome .. ',"at":' .. whole(millis()) .. '}')
redis.call('PUBLISH', channel, id)
`,
})
