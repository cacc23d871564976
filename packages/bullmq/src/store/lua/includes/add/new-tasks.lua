-- add_tasks(first, last, all) adds the tasks whose arguments (new-task.lua) follow, from the position `first` to the position `last`.
-- With `all`, either all of them are added or none. A further argument says that the script may have run before. Returns the reply for
-- each task. `base` is the prefix of the queue's keys.
--
-- Whatever may refuse a task is checked before the first of its writes, so that a task that is refused changes nothing, except that it
-- may extend the delay of the task that has its unique key. (With `all`, no task has a unique key.) A task is refused or recognised in
-- this order: by an earlier delivery from an outbox, by its idempotency key, because it exists or was deleted,
-- by its group, by its unique key, and by the limits of the queue. The reply is
--
--   1 or 3                      if this call has stored the task, now or when it was first sent; 3 if in place of another task
--   0 or 2                      if another call has stored the task; 2 if in place of another task
--   a text                      if an earlier call has used the idempotency key: what that call did, or 'reused' if its request was another
--   a list                      if the task is refused, or if another task has its unique key (unique-keys.lua)
--   { 'error', message }        after an error, for example because a key has the wrong type. The other tasks are added
--   ''                          if the task is not added because another one of all tasks is refused
--- @include time
--- @include error-text
--- @include new-task

local ADDED, REPLACED = 1, 2

-- How many tasks have been accepted so far, and their bytes. They are written at once or, if all are added or none, after the last
-- decision.
local count, bytes = 0, 0
local is_all, is_repeat, stored_bytes = false, false, nil

local rare, created
--- @include place-task

-- Returns the functions that few tasks need, and creates them on the first call: creating them takes longer than adding a plain task.
function rare()
  if created then
    return created
  end
  --- @include forwarded
  --- @include idempotency
  --- @include removed-tasks
  --- @include queue-limits
  --- @include unique-keys
  --- @include enter-place
  created = {
    recall_forwarded = recall_forwarded,
    remember_forwarded = remember_forwarded,
    recall_call = recall_call,
    remember_call = remember_call,
    was_removed = was_removed,
    refuse_by_count = refuse_by_count,
    refuse_by_age = refuse_by_age,
    refuse_by_api_key = refuse_by_api_key,
    charge_api_key = charge_api_key,
    resolve_conflict = resolve_conflict,
    delete_replaced = delete_replaced,
    take_key = take_key,
    enter_place = enter_place,
  }
  return created
end

-- Returns the reply if an earlier call has stored the task, even if the task has been deleted since.
local function recall(task)
  local id, caller, unique = task.id, task.caller, task.unique
  local may_exist = is_repeat or is_all or task.mayExist or unique
  if (may_exist or caller ~= '') and redis.call('EXISTS', base .. id) == 1 then
    local is_own = caller ~= '' and redis.call('HGET', base .. id, 'caller') == caller
    local has_replaced = unique and redis.call('HEXISTS', base .. id, 'replaced') == 1
    return (is_own and ADDED or 0) + (has_replaced and REPLACED or 0)
  end
  if may_exist or task.group then
    local was_removed, had_replaced = rare().was_removed(base, task)
    if was_removed then
      return (caller ~= '' and ADDED or 0) + (had_replaced and REPLACED or 0)
    end
  end
  return nil
end

-- A member of a cancelled group is refused, because the rule that has cancelled the other members may be gone.
local function refuse_group(task)
  local group = string.match(task.group, '^%S+')
  return redis.call('EXISTS', base .. 'cancelled-group:' .. group) == 1 and { 'group cancelled' } or nil
end

-- Returns the reply if the queue has no room for the task.
local function refuse_by_limits(task)
  local max_bytes = tonumber(task.limits)
  if not max_bytes and task.limits ~= '' then
    local max_tasks, most, max_age = string.match(task.limits, '^(%d*),(%d*),(%d*)$')
    max_bytes = tonumber(most)
    local refused = rare().refuse_by_count(task, tonumber(max_tasks)) or rare().refuse_by_age(task, tonumber(max_age))
    if refused then
      return refused
    end
  end
  local refused = task.apiKey and rare().refuse_by_api_key(task)
  if refused or not max_bytes then
    return refused or nil
  end
  stored_bytes = stored_bytes or tonumber(redis.call('HGET', base .. 'totals', 'bytes') or '0')
  local found, needed = stored_bytes - (task.replaced_bytes or 0), bytes_of(task)
  -- Tasks that are added together need room together.
  if is_all then
    needed = needed + bytes
  else
    found = found + bytes
  end
  return found + needed > max_bytes and { 'full', 'maxBytes', found, max_bytes, needed } or nil
end

-- Returns the reply if the task is not added, or nil. The limits come last, so that a call that is sent again receives the same reply even
-- if the queue has become full.
local function decide(task)
  return task.forwarded and rare().recall_forwarded(task)
    or task.idempotency and rare().recall_call(task)
    or recall(task)
    or task.group and refuse_group(task)
    or task.unique and rare().resolve_conflict(task)
    or refuse_by_limits(task)
end

local function note_added(task)
  count, bytes = count + 1, bytes + bytes_of(task)
end

local function write(task)
  local id = task.id
  if task.replaced then
    rare().delete_replaced(task)
  end
  if task.apiKey then
    rare().charge_api_key(task)
  end
  store_hash(task)
  place_task(task)
  if task.expiresAt then
    redis.call('ZADD', base .. 'expiries', task.expiresAt, id)
  end
  if task.max_events ~= '' then
    redis.call('XADD', base .. 'task-events', 'MAXLEN', '~', task.max_events, '*', 'id', id, 'event', task.event)
  end
  if task.unique then
    rare().take_key(task)
  end
  if task.idempotency then
    rare().remember_call(task)
  end
  if task.forwarded then
    rare().remember_forwarded(task)
  end
  return task.replaced and ADDED + REPLACED or ADDED
end

-- Returns what `step` returns for the task. An error must not prevent write_waiting, without which earlier tasks would be in no place.
local function try(step, task)
  local is_done, reply = pcall(step, task)
  if is_done then
    return reply
  end
  return { 'error', error_text(reply) }
end

-- Returns whether this reply refuses the task.
local function is_refusal(reply)
  return reply == 'reused' or type(reply) == 'table'
end

local function add_tasks(first, last, all)
  is_all, is_repeat = all, #ARGV > last
  local replies, tasks, is_refused, at = {}, {}, false, first
  while at <= last do
    local n, task = #replies + 1, nil
    task, at = read_task(at)
    local reply = try(decide, task)
    if reply then
      replies[n], is_refused = reply, is_refused or is_refusal(reply)
    else
      note_added(task)
      tasks[n], replies[n] = task, is_all and '' or try(write, task)
    end
  end
  if is_all then
    if is_refused then
      return replies
    end
    for n = 1, #replies do
      replies[n] = tasks[n] and try(write, tasks[n]) or replies[n]
    end
  end
  if count > 0 then
    redis.call('HINCRBY', base .. 'totals', 'accepted', count)
    redis.call('HINCRBY', base .. 'totals', 'bytes', whole(bytes))
    write_waiting()
  end
  return replies
end
