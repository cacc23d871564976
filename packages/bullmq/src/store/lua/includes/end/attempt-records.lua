-- The records of a task's attempts that did not succeed, in BullMQ's field `stacktrace`: a JSON array of stacks, whose first lines are the
-- records (codec.ts). The newest ten are kept. `job` is the task's key.
--
-- read_stacks(job)                  returns the stacks, and when the newest recorded attempt ended: in ms since 1970, or 0 if there is
--                                   none. A text that is no JSON array counts as no stacks, as in BullMQ
-- append_stack(job, stacks, stack)  stores these stacks and one more
--- @include decode-json

local MAX_ATTEMPT_RECORDS = 10

local function read_stacks(job)
  local is_json, stacks = pcall(decode_json, redis.call('HGET', job, 'stacktrace') or '[]')
  if not is_json or type(stacks) ~= 'table' then
    stacks = {}
  end
  local newest = stacks[#stacks]
  return stacks, type(newest) == 'string' and tonumber(string.match(newest, '^[^\n]*"endedAt":(%d+)')) or 0
end

local function append_stack(job, stacks, stack)
  while #stacks >= MAX_ATTEMPT_RECORDS do
    table.remove(stacks, 1)
  end
  stacks[#stacks + 1] = stack
  redis.call('HSET', job, 'stacktrace', cjson.encode(stacks))
end
