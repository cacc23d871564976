-- Ends the tasks of a pipeline run, and passes on the items that leave a section. See run.lua.
--
-- stop(reason, by, now)                              stops the run, which cancels its tasks. A run that has all results that it takes (the
--                                                    reason `taken`) can still be stopped by a cancel or a timeout
-- add_result(value, now)                             adds a result, which may be a batch of items
-- end_run_task(stage, position, letter, value, now)  records the first end of a task. `letter` says how it has ended
--                                                    (groups/end-letters.ts). `value` is '' if there is none
--- @include run-fields

local function stop(reason, by, now)
  if run.state == 'ended' then
    return
  end
  if run.reason and not (run.reason == 'taken' and (reason == 'cancelled' or reason == 'run_timeout')) then
    return
  end
  set('state', 'stopping')
  set('reason', reason)
  set('stoppedBy', by)
  set('stoppedAt', now)
  for stage = 1, stages + 1 do
    redis.call('UNLINK', waiting_key(stage))
    lengths[stage] = 0
  end
  redis.call('UNLINK', early)
  set('isWaiting', '')
  if run.source == 'parked' then
    set('source', 'done')
  end
  local reduces = redis.call('SISMEMBER', tasks, (stages + 1) .. '.0')
  if redis.call('SCARD', tasks) > reduces then
    for queue in string.gmatch(run.queues, '%S+') do
      write_entry('k ' .. run_token() .. ' ' .. queue .. ' ' .. by)
    end
  end
  if reduces == 1 then
    write_entry('k reduce' .. string.sub(run_token(), 4) .. ' ' .. run.reduceQueue .. ' ' .. by)
  end
end

local function add_result(value, now)
  if run.reduceQueue then
    local bytes = number('resultBytes') + #value
    if bytes > number('maxBytes') then
      return stop('results_too_large', 'run ' .. id, now)
    end
    set('resultBytes', bytes)
    write('RPUSH', results, value)
  end
  add('results', 1)
  if run.take and number('results') == number('take') then
    stop('taken', 'run ' .. id, now)
  end
end
-- Lets an item leave its section: it waits for a batch, or is a result. An item without a value was dropped or has failed.
local function leave_now(section, position, value, now)
  add('left' .. section, 1)
  if value == '' then
    return
  end
  local following = number('last' .. section) + 1
  if has_waiting(following) then
    wait_for(following, position, value)
  else
    add_result(value, now)
  end
end
-- Does so in the order of the positions if the run is ordered: an item that is early waits for those before it.
local function leave(section, position, value, now)
  if run.ordered ~= '1' then
    return leave_now(section, position, value, now)
  end
  local left = 'left' .. section
  if tonumber(position) ~= number(left) then
    write('HSET', early, section .. '.' .. position, value)
    return
  end
  leave_now(section, position, value, now)
  while not run.reason do
    local field = section .. '.' .. run[left]
    local following = redis.call('HGET', early, field)
    if not following then
      return
    end
    redis.call('HDEL', early, field)
    leave_now(section, run[left], following, now)
  end
end

local function fail_item(section, stage, position, letter, now)
  add('errorCount', 1)
  if not run.firstError then
    set('firstError', stage .. ' ' .. position .. ' ' .. letter)
  end
  if run.onError == 'cancel' then
    return stop('first_error', 'run ' .. id, now)
  end
  if number('errorCount') <= number('maxErrors') then
    write('RPUSH', errors, stage .. ' ' .. position .. ' ' .. letter)
  end
  leave(section, position, '', now)
end
local function end_item(stage, position, letter, value, now)
  add('running' .. stage, -1)
  if run.reason then
    return
  end
  local section = number('section' .. stage)
  if letter ~= 'c' then
    add('failed' .. stage, 1)
    count_item(stage, 'failed')
    return fail_item(section, stage, position, letter, now)
  end
  add('completed' .. stage, 1)
  count_item(stage, value == '' and 'dropped' or 'completed')
  if value == '' then
    add('dropped' .. stage, 1)
  end
  if value == '' or stage == number('last' .. section) then
    leave(section, position, value, now)
  else
    wait_for(stage + 1, position, value)
  end
end
local function end_run_task(stage, position, letter, value, now)
  local name = stage .. '.' .. position
  if redis.call('SREM', tasks, name) == 0 then
    return
  end
  redis.call('HDEL', inputs, name)
  local is_completed = letter == 'c'
  if stage == 0 then
    set('isWaiting', '')
    if run.reason or run.isExhausted == '1' then
      set('source', 'done')
    else
      set('source', is_completed and 'parked' or 'failed')
    end
  elseif stage > stages then
    set('reduce', is_completed and 'completed' or letter == 'x' and 'cancelled' or 'failed')
    if is_completed then
      set('output', value)
    end
  else
    end_item(stage, position, letter, value, now)
  end
end
