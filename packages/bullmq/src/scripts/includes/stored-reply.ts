// Defines Lua functions that store the reply of a script that has ended tasks, so that the script can safely be sent again.
//
// If the connection is lost before the reply arrives, the caller does not learn which tasks the script has ended, and a second
// call would find nothing to end. Each call therefore has an id, the request. A second call with the same id returns the stored
// reply.

/** How long a reply to the leader is kept, in ms. The leader stops resending a script after this time. */
export const REPLY_KEPT_MS = 600_000

/**
 * - `stored_reply(key, request)`: returns the reply that was stored for this request, or nil.
 * - `store_reply(key, request, reply, keepMs)`: stores a reply for `keepMs`, replacing the previous one.
 */
export const STORED_REPLY = `
local function stored_reply(key, request)
  local stored = redis.call('GET', key)
  if not stored then return nil end
  local of, reply = unpack(cmsgpack.unpack(stored))
  if of == request then return reply end
end
local function store_reply(key, request, reply, keepMs)
  redis.call('SET', key, cmsgpack.pack({ request, reply }), 'PX', keepMs)
end
`
