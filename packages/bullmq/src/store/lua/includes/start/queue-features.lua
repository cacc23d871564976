-- Finds out which features a queue uses, and what may keep its lanes from starting tasks, so that a queue pays only for the features that
-- it uses. EXISTS counts a key as often as it is given. Each key is given a power of two times, so that one command answers several
-- questions.
--
-- read_features()           returns 1 if lanes take turns, plus 2 if keys have limits, plus 4 if limiters have capacities
-- read_obstacles(features)  returns a table of
--                           has_limits      whether keys have limits
--                           is_counted      whether active tasks are counted, because of these limits or of capacities
--                           has_times       whether a lane may be blocked until some time
--                           has_throttles   whether keys are throttled
--                           has_key_passes  whether a key may have several lanes
--                           has_others      whether tasks without a lane wait
--                           limits_lanes    whether a lane without needs may have to wait, or share its turns
--
-- `base` is the prefix of the queue's keys.
local function read_features()
  local state, limits, capacities = base .. 'turn-state', base .. 'key-limits', base .. 'capacities'
  return redis.call('EXISTS', state, limits, limits, capacities, capacities, capacities, capacities)
end

local function read_obstacles(features)
  local wait, prioritized = base .. 'wait', base .. 'prioritized'
  local throttles, times, passes = base .. 'key-throttles', base .. 'lane-times', base .. 'key-passes'
  local present = redis.call(
    'EXISTS',
    throttles,
    times,
    passes,
    wait,
    wait,
    wait,
    wait,
    prioritized,
    prioritized,
    prioritized,
    prioritized
  )
  local obstacles = { has_limits = features % 4 >= 2, is_counted = features >= 2, has_others = present >= 4 }
  if present % 4 > 0 then
    obstacles.has_times = redis.call('EXISTS', throttles, times) > 0
    obstacles.has_throttles = obstacles.has_times and redis.call('EXISTS', throttles) == 1
    obstacles.has_key_passes = redis.call('EXISTS', passes) == 1
  end
  obstacles.limits_lanes = obstacles.is_counted or obstacles.has_throttles or obstacles.has_key_passes
  return obstacles
end
