-- give_back(lane) gives back what a task that is no longer active has held: its place of its concurrency key, and its shares of
-- limiters. Lets the lanes that have waited for them take turns again (held-places.lua). `lane` is the task's field of that name. Every
-- script that takes a task out of `active` calls it. Returns the queue's features for a start in the same script (queue-features.lua),
-- or nil if the task needs limiters: counting its calls may then open or close a breaker, which changes the features. `base` is the
-- prefix of the queue's keys.
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
