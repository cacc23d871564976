-- Recognises the end of an attempt that is sent again because its reply was lost. The lock is gone by then, or another attempt has it. What
-- the attempt has stored shows whether its first end was carried out. A start that is sent again is recognised by its token.
--
-- was_stored(ending)         whether the task has what this attempt stores, whatever has happened to the task since
-- was_deleted(ending)        whether the script that ended this attempt has deleted the task, which Redis remembers for a short time
-- has_gone_on(ending)        whether the first run has started the Worker's next task, which it does only after an end that it has carried
--                            out. Nothing else shows that BullMQ itself has failed the task, because that leaves no record
-- started_before(token, id)  the reply of a start (task-start.lua) if an active task other than `id` has a lock with this token, or nil. A
--                            Worker uses a token for one task at a time, so it does not know of such a task
--
-- An attempt record is the first line of its stack, and no two records are equal, because they contain the times, the worker and the
-- fencing token. There is no record of the last attempt of a completed task, and none for a task that BullMQ has failed without starting it
-- again. Such a task has ended if it is in the set to which the end moves it, and has not been started since.
--
-- `base` is the prefix of the queue's keys.
--- @include decode-json
--- @include lock

local function record_in(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'stacktrace' then
      local stacks = decode_json(fields[i + 1])
      local newest = type(stacks) == 'table' and stacks[#stacks]
      return type(newest) == 'string' and string.sub(newest, 1, 1) == '{' and newest or nil
    end
  end
end

local function was_stored(ending)
  local id, job, verdict, fencing_token = ending.id, ending.job, ending.verdict, ending.fencing_token
  local record = record_in(ending.fields or {})
  if record then
    for _, stack in ipairs(decode_json(redis.call('HGET', job, 'stacktrace') or '[]')) do
      if stack == record then
        return true
      end
    end
    return false
  end
  local may_have_ended = fencing_token ~= '' and (verdict == 'completed' or verdict == 'dead')
  return may_have_ended
    and redis.call('ZSCORE', base .. verdict, id)
    and redis.call('HGET', job, 'ats') == fencing_token
end

local function was_deleted(ending)
  return ending.fencing_token ~= ''
    and redis.call('ZSCORE', base .. 'recently-removed', ending.id .. ' e' .. ending.fencing_token)
end

-- The newest active tasks are looked at, which are those that the lost run has started unless others have started as many since.
local MOST_LOOKED_AT = 1000
local by_token

local function started_before(token, id)
  if not by_token then
    by_token = {}
    for _, each in ipairs(redis.call('LRANGE', base .. 'active', '0', MOST_LOOKED_AT - 1)) do
      by_token[owner_of(redis.call('HGET', base .. each, 'lock')) or ''] = each
    end
  end
  local found = by_token[token]
  return found and found ~= id and { redis.call('HGETALL', base .. found), found, 0, 0 } or nil
end

local function has_gone_on(ending)
  return is_repeat and started_before(ending.token, ending.id) ~= nil
end
