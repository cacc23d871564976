-- give_back(lane)  gives back what a task has held that is no longer active, and lets lanes that have waited for it take turns again
--                  (held-places.lua). `lane` is the task's field of that name. Returns the queue's features for the fetch that follows
--                  (queue-features.lua), or nil if the task needs limiters: counting its calls may then open or close a breaker, which
--                  changes the features
--- @include lane
--- @include queue-features
--- @include limited-turns

local function give_back(lane)
  local key, needs = split_lane(lane_name(lane))
  local features = read_features()
  local has_limits = features % 4 >= 2
  if needs or has_limits and key ~= '' then
    limited().give_back_places(key, needs, has_limits)
  end
  return not needs and features or nil
end
