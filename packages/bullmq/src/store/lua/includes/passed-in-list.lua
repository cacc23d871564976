-- passed_in_list(list, last, passed) returns how many tasks there are from the right end of a list up to and including the task `last`,
-- or 0 if the task is '' or has left the list. `passed` is how many there were at an earlier look: the task is usually still there.
local function passed_in_list(list, last, passed)
  if last == '' then
    return 0
  end
  if redis.call('LINDEX', list, -passed) == last then
    return tonumber(passed)
  end
  local index = redis.call('LPOS', list, last, 'RANK', -1)
  return index and redis.call('LLEN', list) - index or 0
end
