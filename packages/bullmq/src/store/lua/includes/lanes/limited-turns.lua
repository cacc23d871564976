-- limited() returns the functions that turns need only in a queue that limits something (lane-turn.lua, held-places.lua), or that has met
-- something rare (rare-turns.lua). The first call creates them: they would cost a queue whose lanes only take turns more than its turns.
--- @include lane
--- @include leave-lane

local created_limited

local function limited()
  if created_limited then
    return created_limited
  end
  --- @include held-places
  --- @include lane-turn
  --- @include rare-turns
  created_limited = {
    hold_places = hold_places,
    give_back_places = give_back_places,
    open_turn = open_turn,
    holds_up = holds_up,
    end_turn = end_turn,
    end_idle_turn = end_idle_turn,
    resume_due = resume_due,
    begin_again = begin_again,
    return_stray = return_stray,
  }
  return created_limited
end
