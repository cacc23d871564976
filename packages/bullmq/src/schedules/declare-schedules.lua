#!lua flags=allow-oom
-- Notes which editions of schedules a running process declares, and forgets those that no process has declared for a while.
--
-- KEYS  editions  by the name of a schedule, the digest that was stored last; by name and digest, since when and until when processes have
--                 declared it
-- ARGV  forgetMs  after how long without a process an edition is forgotten
-- ARGV  keepMs    how long everything is kept if no process declares a schedule
-- ARGV[3...]  the names and digests of the schedules of the process's catalogue
--
-- Returns `string[]`: the fields of the hash with their values. Times are in ms since 1970.
--- @include time

local now = millis()
local known = redis.call('HGETALL', editions)
for i = 1, #known, 2 do
  local last = string.find(known[i], ' ', 1, true) and string.match(known[i + 1], ' (%d+)$')
  if last and tonumber(last) < now - tonumber(forgetMs) then
    redis.call('HDEL', editions, known[i])
  end
end
for i = 3, #ARGV, 2 do
  local field = ARGV[i] .. ' ' .. ARGV[i + 1]
  local first = string.match(redis.call('HGET', editions, field) or '', '^%d+') or whole(now)
  redis.call('HSET', editions, field, first .. ' ' .. whole(now))
end
redis.call('PEXPIRE', editions, keepMs)
return redis.call('HGETALL', editions)
