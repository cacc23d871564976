// Defines Lua functions that read Redis's clock.

/** `whole` formats a number up to 2^53 without an exponent. `micros` and `millis` return Redis's time since 1970. */
export const TIME = `
local function whole(number) return string.format('%.0f', number) end
local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function millis() return math.floor(micros() / 1000) end
`
