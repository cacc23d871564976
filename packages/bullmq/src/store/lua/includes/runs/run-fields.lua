-- The hash of a pipeline run as a table, and what changes write: items that wait for a stage, tasks that start, entries of the outbox. See
-- run.lua, which says which locals this expects.
--
-- A run has the stages 1 to `stages`. Stage 0 is the source, whose tasks are the numbered segments, and the stage after the last one is
-- the reduction, with one task. The name of a task is its stage, a dot, and its segment or the position of its item. Batches divide the
-- stages into sections, from `first<section>` to `last<section>`; an item keeps its position within a section. A section's window is how
-- many items may be in it, and a stage's room is how many tasks and waiting outputs it may have together.
--
-- run                                            the fields of the run's hash. What `changed` names is written at the end of the script,
--                                                and the keys in `touched` then get the run's expiry time
-- number(name), set(name, value), add(name, by)  a field as a number, or 0; changes of a field
-- run_token()                                    the run's id and incarnation
-- count_item(stage, outcome)                     counts an item for the reply
-- length(stage)                                  how many items wait for a stage or, after the last one, for a batch of results
-- write(command, key, ...)                       runs a command that writes a key of the run
-- write_entry(text)                              adds an entry to the run's outbox
-- start(stage, position, value)                  starts a task. A long value stays at the run
-- wait_for(stage, position, value)               lets an item wait for a stage
-- enter(section)                                 returns the position of an item that enters a section
-- free()                                         how many items the source may emit now
-- push_item(value)                               adds an item, or a batch of items, that the source has emitted
--- @include time

-- A longer input is not passed on but kept at the run, and the task gets a reference (engine/src/pipelines/kept-input.ts).
local MAX_PASSED_BYTES, REFERENCE_MARK = 65536, '@'
-- Before the items of a batch (engine/src/task/payload/value-text.ts).
local BATCH_MARK = '*'

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
