-- is_after(id, other) compares two members with the same score as Redis does: by their bytes, whereas Lua's own comparison may follow the
-- locale of the server.
local function is_after(id, other)
  for at = 1, math.min(#id, #other) do
    local byte, of_other = string.byte(id, at), string.byte(other, at)
    if byte ~= of_other then
      return byte > of_other
    end
  end
  return #id > #other
end
