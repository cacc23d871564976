-- The functions of place-task.lua for scripts that return tasks: tasks that have waited or run before.
--- @include enter-place

-- place-task.lua expects a function with this name. In scripts that add tasks, it creates what few tasks need (new-tasks.lua).
local function rare()
  return { enter_place = enter_place }
end
--- @include place-task
