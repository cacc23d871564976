-- Ends the tasks that match a cancel rule, and counts them. `base` is the prefix of the queue's keys, and `progress` is the prefix of the
-- keys of the rules' progress.
--
-- open_rules(rules)            takes the decoded rules. It must be called before the other functions
-- matched                      how many tasks each rule has matched
-- ended                        the id and the name of each task that was ended
-- note_match(id)               counts a match if a rule matches the task
-- note_all_matched()           counts a match for every rule
-- match_of(id)                 returns what end_match needs, or nil if no rule matches the task
-- end_match(match, place)      ends a task that was taken out of the place with this name
--- @include matching-rule
--- @include end-without-run

local cancel_rules, matched, ended = {}, {}, {}

local function open_rules(rules)
  cancel_rules = rules
  for i = 1, #rules do
    matched[i] = 0
  end
end

local function note_match(id)
  local i = matching_rule(base, cancel_rules, id)
  if i then
    matched[i] = matched[i] + 1
  end
end

local function note_all_matched()
  for i = 1, #matched do
    matched[i] = matched[i] + 1
  end
end

local function match_of(id)
  local i, name = matching_rule(base, cancel_rules, id)
  return i and { rule = i, name = name, task = read_waiting_task(id) }
end

local function end_match(match, place)
  local rule, id = cancel_rules[match.rule], match.task.id
  end_waiting_task(match.task, place, 'cancelled', rule)
  redis.call('HINCRBY', progress .. rule.id, 'ended', 1)
  matched[match.rule] = matched[match.rule] + 1
  ended[#ended + 1] = id
  ended[#ended + 1] = match.name
end
