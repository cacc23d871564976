// Finds out which features a queue uses, and what may keep its lanes from starting tasks, so that a queue pays only for
// the features that it uses.
//
// EXISTS counts a key as often as it is given. Each feature has its own power of two, so one command answers several
// questions.
import { KEY_THROTTLES } from './key-throttle.ts'
import { KEY_PASSES } from './limiters/limiter-steps.ts'

/**
 * The Lua expression for whether keys have limits, and whether limiters have capacities. `features` is that of
 * {@link READ_FEATURES}.
 */
export const HAS_LIMITS = 'features % 4 >= 2'
export const HAS_CAPACITIES = 'features >= 4'

/**
 * Lua lines that find out which features the queue uses, and store them in the variable `features`, which must be
 * declared: 1 if lanes take turns, plus 2 if keys have limits, plus 4 if limiters have capacities. EXISTS counts a key
 * as often as it is given, so one command answers all three questions.
 */
export const READ_FEATURES = `local state, key_limits, capacities = base .. 'turn-state', base .. 'key-limits', base .. 'capacities'
    features = call('EXISTS', state, key_limits, key_limits, capacities, capacities, capacities, capacities)`

/**
 * Lua lines that find what may keep lanes from starting tasks, and store it in local variables: `has_limits` and
 * `has_throttles` of keys, `has_times` if a lane may be blocked until some time, `has_capacities` of limiters, and
 * `has_key_passes` if a key may have several lanes. `has_others` says whether tasks without a lane wait. The lines
 * follow {@link READ_FEATURES}. If the queue has none of these, they run one EXISTS.
 */
export const READ_OBSTACLES = `local wait, prioritized, has_limits, has_capacities = base .. 'wait', base .. 'prioritized', ${HAS_LIMITS}, ${HAS_CAPACITIES}
    local present = call('EXISTS', ${KEY_THROTTLES}, base .. 'lane-times', ${KEY_PASSES}, wait, wait, wait, wait,
      prioritized, prioritized, prioritized, prioritized)
    local has_others, has_rare = present >= 4, present % 4 > 0
    local has_times = has_rare and call('EXISTS', ${KEY_THROTTLES}, base .. 'lane-times') > 0
    local has_throttles = has_times and call('EXISTS', ${KEY_THROTTLES}) == 1
    local has_key_passes = has_rare and call('EXISTS', ${KEY_PASSES}) == 1`
