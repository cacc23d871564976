// Runs several read commands, all as of the same moment.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the key of the first command; those of the others share its hash slot.
 * - ARGV: for each command, how many words it has, and the words.
 *
 * Returns the commands' replies.
 *
 * A transaction would do the same, but a full Redis refuses every command of a transaction.
 */
export const readTogetherScript = defineScript({
  name: 'read-together',
  kind: 'reads',
  keys: ['first'],
  args: [],
  lua: `
local replies, at = {}, 1
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return replies
`,
  answer: (reply) => reply as unknown[],
})
