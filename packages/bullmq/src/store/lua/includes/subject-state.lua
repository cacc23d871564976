-- states_of(remove) returns the state of each subject (orphans/subject.ts) in ARGV: of keys, and of entries of keys, that may have no
-- owner. Takes Redis about 1 µs for each condition, and much longer for a condition of the kind `listed`. Calls `remove` with the key, its
-- type, the entry or false, and the keys that are deleted with the key, for each subject whose state is `no_owner`.
--- @include time
local now, position = millis(), 1

local function take()
  position = position + 1
  return ARGV[position - 1]
end

-- Returns nil if the key has another type.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    return nil
  end
  return reply
end

-- Whether a condition holds, by its kind.
local holds = {
  exists = function(key)
    return ask('EXISTS', key) == 1
  end,
  scored = function(key, member)
    return ask('ZSCORE', key, member)
  end,
  field = function(key, name)
    return ask('HEXISTS', key, name) == 1
  end,
  listed = function(key, element)
    return ask('LPOS', key, element)
  end,
  laned = function(base, id)
    local lane = ask('HGET', base .. id, 'lane')
    local name = lane and string.match(lane, ' (.*)$')
    return name and (ask('ZSCORE', base .. 'lane-priorities:' .. name, id) or ask('LPOS', base .. 'lane:' .. name, id))
  end,
  expires = function(key)
    return ask('PTTL', key) >= 0
  end,
  points = function(key, prefix)
    local id = ask('GET', key)
    return id and ask('EXISTS', prefix .. id) == 1
  end,
  later = function(_, time)
    return now < tonumber(time)
  end,
}

-- Returns whether the entry is still there with the value with which it was read.
local function is_there(key, kind, entry, value)
  if kind == 'hash' then
    return ask('HGET', key, entry) == value
  elseif kind == 'zset' then
    return ask('ZSCORE', key, entry) == value
  elseif kind == 'set' then
    return ask('SISMEMBER', key, entry) == 1
  end
  return ask('LPOS', key, entry)
end

local function state_of_next(remove)
  local key, kind, expires, is_entry, entry, value = take(), take(), take() == '1', take() == '1', take(), take()
  local conditions, is_owned = tonumber(take()), false
  for _ = 1, conditions do
    local condition, of, argument = take(), take(), take()
    is_owned = is_owned or holds[condition](of, argument)
  end
  local with = {}
  for i = 1, tonumber(take()) do
    with[i] = take()
  end
  local found = redis.call('TYPE', key).ok
  if found == 'none' then
    return 'owned'
  elseif kind == '' then
    return 'unknown'
  elseif found ~= kind then
    return 'wrong_type'
  elseif conditions > 0 and not is_owned then
    -- Looking for an entry may take long, so this comes last.
    if is_entry and not is_there(key, kind, entry, value) then
      return 'owned'
    end
    remove(key, kind, is_entry and entry, with)
    return 'no_owner'
  end
  return expires and redis.call('PTTL', key) < 0 and 'no_expiry' or 'owned'
end

local function states_of(remove)
  local states = {}
  while position <= #ARGV do
    states[#states + 1] = state_of_next(remove)
  end
  return states
end
