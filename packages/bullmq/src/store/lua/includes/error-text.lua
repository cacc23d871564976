-- error_text(reason) returns the message of what pcall has caught: an error with which Redis has replied, or one of Lua.
local function error_text(reason)
  return type(reason) == 'table' and reason.err or tostring(reason)
end
