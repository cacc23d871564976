#!lua flags=allow-oom
-- Acquires or renews the lease of a namespace's leader.
--
-- KEYS  lease, fencing, schema
-- ARGV  holder         the caller
-- ARGV  leaseMs        how long the lease lasts
-- ARGV  schemaVersion  the caller's schema version; one that is older than the namespace's never leads
-- ARGV  above          the highest fencing number that the caller has seen
-- ARGV  channel        the leader's channel, on which every renewal sends a beat ('.'), so that subscribers need no pings
--
-- Returns `[fencing: number, leftMs: number, newest: number]`: the caller's fencing number (0 if it does not lead), the time that the
-- lease still lasts, and the fencing number of the newest leader.
--
-- The number grows with each new leader. If a failover has lost the newest numbers, the lease's holder gets a number above those that
-- the queues have stored.
local newest = tonumber(redis.call('GET', schema) or '0')
local number = tonumber(redis.call('GET', fencing) or '0')
if newest > tonumber(schemaVersion) then
  return { 0, tonumber(leaseMs), number }
end
local current = redis.call('GET', lease)
if current and current ~= holder then
  return { 0, redis.call('PTTL', lease), number }
end
if not current or number <= tonumber(above) then
  number = math.max(number, tonumber(above)) + 1
  redis.call('SET', fencing, string.format('%.0f', number))
end
redis.call('SET', lease, holder, 'PX', leaseMs)
redis.call('PUBLISH', channel, '.')
return { number, tonumber(leaseMs), number }
