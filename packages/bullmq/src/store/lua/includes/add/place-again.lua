-- Puts tasks that have waited or run before into the place where they wait, with the functions of place-task.lua.
--- @include waiting-place

-- place-task.lua expects this function. Scripts that add tasks create its functions only on first use (new-tasks.lua).
local function rare()
  return { enter_place = enter_place }
end
--- @include place-task
