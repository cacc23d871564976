-- given_time(given) returns the time that an argument of a script gives, in ms since 1970, or that of Redis's clock if the argument is ''.
-- The time is text, because Redis would round a number that a script passes on.
--- @include time
local function given_time(given)
  return given ~= '' and given or whole(millis())
end
