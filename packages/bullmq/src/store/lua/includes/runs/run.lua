-- What changes a pipeline run. A script reads the run's hash once, changes a table, and writes the changed fields at its end. Values are
-- texts that no script interprets. A change writes the tasks and cancels that follow from it to the run's outbox. The same script claims
-- these entries for its caller, which delivers them without another call. If the caller dies, the leader finds the claims within seconds.
--
-- Expects the run's keys as the locals `base`, `meta`, `definition`, `tasks`, `inputs`, `early`, `results`, `errors` and `outbox`, and the
-- locals `id` and `channels`, the prefix of the channels. The table `run` (run-fields.lua) is empty if there is no such run. Entries
-- contain the run's token: see runToken of the engine.
--
-- A script changes the run with the functions of run-fields.lua and run-items.lua, and then calls reply(now, more). It starts what the
-- change allows to start, ends the run if nothing is left to do, saves the run, and returns the script's reply (RunReply in
-- runs/run-change.ts).
--
-- engine/src/pipelines/run-state.ts and its neighbours make the same decisions in memory and explain them; a model test compares both.
--- @include outbox-claims
--- @include run-advance

-- The most entries that one call returns. A page of ends or items starts about as many tasks as it contains.
local MAX_CLAIMED = 1000
-- How long the outbox of a run that has ended stays, in ms, even if the run itself is not kept.
local OUTBOX_KEPT_MS = 60000

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
  local entries = redis.call('EXISTS', outbox) == 1 and claim_fresh(MAX_CLAIMED) or {}
  return { ended, entries, more or false, items, run.incarnation }
end
