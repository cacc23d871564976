-- REPLY_KEPT_MS                             how long a reply to the leader is kept, in ms. The leader does not send a script again after
--                                           that
-- stored_reply(key, request)                returns the reply that was stored for this request, or nil
-- store_reply(key, request, reply, keepMs)  stores a reply for `keepMs`, in place of the previous one
--
-- If the connection is lost before the reply of a script that ends tasks arrives, the caller does not learn which tasks the script has
-- ended, and a second call would find nothing to end. Each call therefore has an id, the request. A second call with the same id
-- returns the stored reply.
local REPLY_KEPT_MS = 600000

local function stored_reply(key, request)
  local stored = redis.call('GET', key)
  if not stored then
    return nil
  end
  local of, reply = unpack(cmsgpack.unpack(stored))
  if of == request then
    return reply
  end
end
local function store_reply(key, request, reply, keepMs)
  redis.call('SET', key, cmsgpack.pack({ request, reply }), 'PX', keepMs)
end
