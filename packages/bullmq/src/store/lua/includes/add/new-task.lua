-- Reads a new task from ARGV, and writes its hash.
--
-- read_task(at)     returns the task whose arguments begin at this position, and the position after its last one
-- bytes_of(task)    how many bytes of the queue's limit the task takes until its end (task-charge.lua)
-- store_hash(task)  writes the task's hash
--
-- The arguments of a task are its id, its name, its stored data, its options (JSON), when it was enqueued (ms since 1970), a token of
-- its caller or '', the queue's limits (queue-limits.lua) or '', how many events of tasks the queue keeps or '', the event of its
-- enqueue, and how many further fields it has, each of which is a name and a value. Most tasks have none of these fields:
--
--   delay        in ms
--   priority     from 1
--   expiresAt    when it expires, in ms since 1970
--   tags         a JSON array
--   lane         see lanes.lua
--   mayExist     an earlier call may have stored it
--   idempotency  see idempotency.lua
--   unique       see unique-keys.lua
--   apiKey       see queue-limits.lua
--   followUps    what its end enqueues (outbox.lua)
--   group        the id of a group or run, and which of its tasks this is
--   forwarded    see forwarded.lua
local FIELDS = 10
local TASK_OVERHEAD_BYTES = 512

local function read_task(at)
  local task = {
    id = ARGV[at],
    name = ARGV[at + 1],
    data = ARGV[at + 2],
    options = ARGV[at + 3],
    enqueued_at = ARGV[at + 4],
    caller = ARGV[at + 5],
    limits = ARGV[at + 6],
    max_events = ARGV[at + 7],
    event = ARGV[at + 8],
  }
  local first = at + FIELDS
  local last = first + 2 * tonumber(ARGV[first - 1])
  for i = first, last - 1, 2 do
    task[ARGV[i]] = ARGV[i + 1]
  end
  return task, last
end

local function bytes_of(task)
  return #task.data + #(task.followUps or '') + TASK_OVERHEAD_BYTES
end

local function append(list, name, value)
  list[#list + 1] = name
  list[#list + 1] = value
end

local function store_hash(task)
  local fields = { 'name', task.name, 'data', task.data, 'opts', task.options, 'timestamp', task.enqueued_at }
  append(fields, 'delay', task.delay or '0')
  append(fields, 'priority', task.priority or '0')
  if task.caller ~= '' then
    append(fields, 'caller', task.caller)
  end
  if task.max_events ~= '' then
    append(fields, 'events', task.max_events)
  end
  for _, name in ipairs({ 'tags', 'lane', 'group', 'followUps' }) do
    if task[name] then
      append(fields, name, task[name])
    end
  end
  if task.replaced then
    append(fields, 'replaced', '1')
  end
  -- What the end of the task implies (task-charge.lua).
  local is_followed, name = task.followUps or task.group, task.counted_for
  if is_followed or name then
    append(fields, 'atEnd', (is_followed and '+' or '-') .. (name or ''))
  end
  redis.call('HSET', base .. task.id, unpack(fields))
end
