// Names what workers of this version can do that older ones cannot. A worker reports these features with each heartbeat, so that
// producers know whether all workers of a queue understand what they store (../admission/fleet-features.ts).

/**
 * - `turns`: fetches tasks that wait in lanes (../store/lua/includes/lanes/lanes.lua).
 * - `limiters`: counts what tasks hold of limiters (../store/lua/includes/limits/limiters.lua).
 * - `breakers`: applies circuit breakers, and reports what its attempts show about services (../store/lua/includes/limits/gates.lua).
 */
export const FEATURES = ['turns', 'limiters', 'breakers'] as const

export type Feature = (typeof FEATURES)[number]
