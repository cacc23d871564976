#!lua flags=no-writes
-- Reads the clock of the server that holds a key.
--
-- KEYS  anchor  any key on the server, which is not read
--
-- Returns `[seconds: string, micros: string]`: the time since 1970, as TIME does.
return redis.call('TIME')
