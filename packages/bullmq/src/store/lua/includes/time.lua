-- Redis's clock, which all processes share.
--
-- millis()       the time in ms since 1970, which is the same in a whole script
-- micros()       the same in µs
-- whole(number)  a number up to 2^53 as text without an exponent, because Redis would round a number that a script passes on
local function whole(number)
  return string.format('%.0f', number)
end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local read_millis
local function millis()
  read_millis = read_millis or math.floor(micros() / 1000)
  return read_millis
end
