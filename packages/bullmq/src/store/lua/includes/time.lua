-- Redis's clock, which all processes share.
--
-- millis()       the time in ms since 1970
-- micros()       the same in µs
-- whole(number)  a number up to 2^53 as text without an exponent, because Redis would round a number that a script passes on
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis()
  return math.floor(micros() / 1000)
end
