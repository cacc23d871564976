#!lua flags=no-writes
-- Reads the clock of the server that holds a key.
--
-- KEYS[1]  anchor  any key on the server, which is not read
--
-- Returns `[seconds: string, micros: string]`: the time since 1970, as TIME does.
local anchor = KEYS[1]
return redis.call('TIME')
