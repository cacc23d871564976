#!lua flags=allow-oom
-- Finds out whether the server that has a key accepts writes to it, as probe-primary does. O(1).
--
-- KEYS  anchor  decides the node of a cluster; Redis also checks that the user may write to it
return 1
