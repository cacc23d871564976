-- has_tag(stored, tag) returns whether a task has this tag. `stored` is the task's field `tags`, or false.
--- @include decode-json

local function has_tag(stored, tag)
  for _, each in ipairs(stored and decode_json(stored) or {}) do
    if each == tag then
      return true
    end
  end
  return false
end
