-- forget_turns(base) deletes what is stored about the turns of lanes and about lanes that wait. The caller has made sure that no task
-- of the queue is in a lane. `base` is the prefix of the queue's keys.
local function forget_turns(base)
  if redis.call('EXISTS', base .. 'waited-needs') == 1 then
    for _, need in ipairs(redis.call('ZRANGE', base .. 'waited-needs', 0, -1)) do
      redis.call('UNLINK', base .. 'need-waiters:' .. need)
    end
    redis.call('UNLINK', base .. 'waited-needs')
  end
  local turns, state = base .. 'turns', base .. 'turn-state'
  redis.call('UNLINK', turns, state, base .. 'blocked-lanes', base .. 'lane-times', base .. 'key-passes')
end
