#!lua flags=allow-oom
-- Finds out whether a server is a primary that accepts writes. Redis refuses this script on a read-only replica, and whenever it refuses
-- writes, although the script writes nothing, because it does not say so. Redis runs it at `maxmemory`. O(1).
return 1
