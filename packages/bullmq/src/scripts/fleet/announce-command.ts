// Announces a command, after its queue settings, if it has any, have been applied.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the unapplied commands, the revision of the queue settings.
 * - ARGV: the command's id, '1' if it has changed the settings of a queue, the channel, the message.
 *
 * Returns nothing. Workers read the settings again when the revision has changed. The script runs even if Redis is full.
 */
export const announceCommand = defineScript({
  name: 'announce-command',
  kind: 'frees',
  keys: ['unapplied', 'settingsRevision'],
  args: ['id', 'hasChanged', 'channel', 'message'],
  lua: `
if hasChanged == '1' then
  redis.call('ZREM', unapplied, id)
  redis.call('INCR', settingsRevision)
end
redis.call('PUBLISH', channel, message)
`,
})
