-- What changes a pipeline run. A script reads the run's hash once, changes a table, and writes the changed fields at its end. Values are
-- texts that no script interprets. A change writes the tasks and cancels that follow from it to the run's outbox. The same script claims
-- these entries for its caller, which delivers them without another call. If the caller dies, the leader finds the claims within seconds.
--
-- Expects the run's keys as the locals `base`, `meta`, `definition`, `tasks`, `inputs`, `early`, `results`, `errors` and `outbox`, and the
-- locals `id` and `channels`, the prefix of the channels. The table `run` contains the fields of the run's hash, and is empty if there is
-- no such run. Entries contain the run's token: see runToken of the engine.
--
-- number(name), set(name, value), add(name, by)  a field as a number, or 0; changes of a field
-- push_item(value)     adds an item, or a batch of items, that the source has emitted
-- end_task(stage, position, letter, value, now)  records the end of a task. `value` is '' if there is none
-- stop(reason, by, now)  stops the run
-- reply(now, more)     starts what a change allows to start, saves the run, and returns the reply (RunReply in runs/run-change.ts). Called
--                      last
--
-- engine/src/pipelines/run-state.ts and its neighbours make the same decisions in memory and explain them; a model test compares both.
--- @include time

-- A longer input is not passed on but kept at the run, and the task gets a reference (engine/src/pipelines/kept-input.ts).
local MAX_PASSED_BYTES, REFERENCE_MARK = 65536, '@'
-- Before the items of a batch (engine/src/task/payload/value-text.ts).
local BATCH_MARK = '*'
-- The most entries that one call returns. A page of ends or items starts about as many tasks as it contains.
local MAX_CLAIMED = 1000
-- How long the outbox of a run that has ended stays, in ms, even if the run itself is not kept.
local OUTBOX_KEPT_MS = 60000

local run, changed, touched = {}, {}, {}
do
  local flat = redis.call('HGETALL', meta)
  for i = 1, #flat, 2 do
    run[flat[i]] = flat[i + 1]
  end
end
local function run_token()
  return id .. '.' .. run.incarnation
end
local function number(name)
  return tonumber(run[name] or 0)
end
local function set(name, value)
  run[name] = type(value) == 'number' and whole(value) or value
  changed[name] = true
end
local function add(name, by)
  set(name, number(name) + by)
end
local counted = {}
local function count_item(stage, outcome)
  local name = stage .. ' ' .. outcome
  counted[name] = (counted[name] or 0) + 1
end
local stages = number('stages')
local function waiting_key(stage)
  return base .. 'waiting:' .. stage
end
-- Items wait for each stage, and outputs for a batch of results.
local function has_waiting(stage)
  return stage <= stages or run['batch' .. stage] ~= nil
end
local lengths = {}
local function length(stage)
  if not lengths[stage] then
    lengths[stage] = has_waiting(stage) and redis.call('LLEN', waiting_key(stage)) or 0
  end
  return lengths[stage]
end
local function write(command, key, ...)
  touched[key] = true
  return redis.call(command, key, ...)
end
local function write_entry(text)
  write('XADD', outbox, '*', 'e', text)
end
local function start(stage, position, value)
  local name = stage .. '.' .. position
  write('SADD', tasks, name)
  if #value > MAX_PASSED_BYTES then
    write('HSET', inputs, name, value)
    value = REFERENCE_MARK .. #value
  end
  write_entry('i ' .. run_token() .. ' ' .. stage .. ' ' .. position .. '\n' .. value)
end
local function wait_for(stage, position, value)
  length(stage)
  write('RPUSH', waiting_key(stage), position .. ' ' .. value)
  lengths[stage] = lengths[stage] + 1
end
-- How many of its own items are in a section, or wait behind it for a batch.
local function held_by(section)
  return number('entered' .. section) - number('left' .. section) + length(number('last' .. section) + 1)
end
local function free()
  return number('window1') - held_by(1)
end
local function enter(section)
  local position = number('entered' .. section)
  set('entered' .. section, position + 1)
  return whole(position)
end
local function push_item(value)
  wait_for(1, enter(1), value)
end

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
-- Behind a section, items wait for a batch, or they are results.
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
local function end_task(stage, position, letter, value, now)
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

-- Whether every item that will ever enter a section has left it.
local function is_emptied(section)
  if number('entered' .. section) > number('left' .. section) then
    return false
  end
  if section == 1 then
    return run.isExhausted == '1' or run.source == 'failed'
  end
  return length(number('first' .. section)) == 0 and is_emptied(section - 1)
end
-- Takes a batch from the items that wait for a stage, if it is full or if no item can come any more. 'before' is the section before the stage.
local function take_batch(stage, before)
  local waits, size = length(stage), number('batch' .. stage)
  if waits == 0 or waits < size and not is_emptied(before) then
    return
  end
  local values = redis.call('LPOP', waiting_key(stage), size)
  for i, item in ipairs(values) do
    values[i] = string.match(item, '^%d+ (.*)$')
  end
  lengths[stage] = waits - #values
  return BATCH_MARK .. table.concat(values, '\n')
end
-- Returns the position and the value of the next item for a stage, or nothing if none may start.
local function next_item(stage)
  local section = number('section' .. stage)
  if section == 1 or number('first' .. section) < stage then
    if length(stage) == 0 then
      return
    end
    lengths[stage] = lengths[stage] - 1
    return string.match(redis.call('LPOP', waiting_key(stage)), '^(%d+) (.*)$')
  end
  if held_by(section) >= number('window' .. section) then
    return
  end
  local value = take_batch(stage, section - 1)
  if value then
    return enter(section), value
  end
end

local function advance(now)
  while not run.reason and has_waiting(stages + 1) do
    local result = take_batch(stages + 1, number('section' .. stages))
    if not result then
      break
    end
    add_result(result, now)
  end
  if run.reason then
    return
  end
  for stage = stages, 1, -1 do
    local concurrency, room = number('concurrency' .. stage), number('room' .. stage)
    local running, outputs = number('running' .. stage), length(stage + 1)
    local started = 0
    while running + started < math.min(concurrency, room - outputs) do
      local position, value = next_item(stage)
      if not position then
        break
      end
      started = started + 1
      start(stage, position, value)
    end
    if started > 0 then
      add('running' .. stage, started)
    end
  end
  if 2 * free() < number('window1') then
    return
  end
  if run.source == 'parked' then
    set('source', 'active')
    add('segment', 1)
    set('fencingToken', 0)
    start(0, run.segment, '')
  elseif run.isWaiting == '1' then
    set('isWaiting', '')
    redis.call('PUBLISH', channels .. 'credits', id)
  end
end

-- Returns whether this call has ended the run.
local function finish(now)
  if run.state == 'ended' or redis.call('SCARD', tasks) > 0 then
    return false
  end
  local is_whole = run.reason == 'taken' or not run.reason and run.source == 'done'
  if is_whole and run.reduce == 'pending' then
    set('state', 'reducing')
    set('reduce', 'running')
    start(stages + 1, 0, '')
    return false
  end
  local is_completed = is_whole and (run.reduce == 'none' or run.reduce == 'completed')
  set('state', 'ended')
  set('endedAt', now)
  set('result', is_completed and 'completed' or run.reason == 'cancelled' and 'cancelled' or 'failed')
  return true
end

local function save(has_ended)
  local fields = {}
  for name in pairs(changed) do
    fields[#fields + 1] = name
    fields[#fields + 1] = run[name]
  end
  if #fields > 0 then
    redis.call('HSET', meta, unpack(fields))
  end
  if not has_ended then
    for key in pairs(touched) do
      redis.call('PEXPIREAT', key, run.expiresAt)
    end
    return
  end
  redis.call('UNLINK', tasks, inputs, early, results)
  for _, key in ipairs({ meta, definition, errors }) do
    redis.call('PEXPIRE', key, run.keepMs)
  end
  redis.call('PEXPIRE', outbox, math.max(number('keepMs'), OUTBOX_KEPT_MS))
  redis.call('PUBLISH', channels .. 'ended', id)
end

local function claim()
  if redis.call('EXISTS', outbox) == 0 then
    return {}
  end
  local function read()
    return redis.pcall('XREADGROUP', 'GROUP', 'forwarders', 'forwarder', 'COUNT', MAX_CLAIMED, 'STREAMS', outbox, '>')
  end
  local found = read()
  -- The consumer group is deleted together with an empty outbox.
  if found and found.err then
    redis.call('XGROUP', 'CREATE', outbox, 'forwarders', '0')
    found = read()
  end
  if found and found.err then
    error(found.err)
  end
  local entries = {}
  for _, entry in ipairs(found and found[1][2] or {}) do
    entries[#entries + 1] = { entry[1], entry[2][2] }
  end
  return entries
end

local function reply(now, more)
  local has_ended = false
  if run.state ~= 'ended' then
    advance(now)
    has_ended = finish(now)
  end
  save(has_ended)
  local items = {}
  for name, count in pairs(counted) do
    items[#items + 1] = name
    items[#items + 1] = count
  end
  local ended = has_ended and { run.result, run.endedAt - run.createdAt } or false
  return { ended, claim(), more or false, items, run.incarnation }
end
