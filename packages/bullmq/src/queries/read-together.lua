#!lua flags=no-writes
-- Runs several read commands, all as of the same moment. A transaction would do the same, but a full Redis refuses every command of a
-- transaction.
--
-- KEYS  first  the key of the first command; those of the others share its hash slot
-- ARGV[1...]  for each command, how many words it has, and the words
--
-- Returns `unknown[]`: the commands' replies.
local replies, at = {}, 1
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return replies
