// Lua that moves all tasks out of their lanes to BullMQ's own places, for BullMQ's scripts that delete all waiting
// jobs.
import { listOf, prioritiesOf } from './lanes.ts'
import { FORGET_TURNS } from './turn-steps.ts'

/** How many tasks one command moves. A Lua function has room for about 8,000 arguments. */
const AT_ONCE = 1_000

/** Lua lines that need the local variables `call` and `base`. O(n), as the scripts that follow. */
export const SPILL_LANES = `
  for _, lane in ipairs(call('ZRANGE', base .. 'lanes', 0, -1)) do
    local list, priorities = ${listOf('lane')}, ${prioritiesOf('lane')}
    repeat
      local ids = call('RPOP', list, ${AT_ONCE})
      if ids then call('LPUSH', base .. 'wait', unpack(ids)) end
    until not ids
    repeat
      local ids = call('ZPOPMIN', priorities, ${AT_ONCE})
      for i = 1, #ids, 2 do call('ZADD', base .. 'prioritized', ids[i + 1], ids[i]) end
    until #ids == 0
  end
  call('UNLINK', base .. 'lanes')
  ${FORGET_TURNS}`
