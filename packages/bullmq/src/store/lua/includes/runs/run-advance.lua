-- Starts the tasks of a pipeline run that may start, and ends the run. See run.lua.
--
-- advance(now)  adds the batches of results that are full, and starts what may start: items, full batches, the next segment of the source
-- finish(now)   ends the run, or starts its reduction, if none of its tasks is left. Returns whether this call has ended the run
--- @include run-items

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
-- Takes a batch from the items that wait for a stage, if it is full or no item can come any more. `before` is the section before the
-- stage.
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
