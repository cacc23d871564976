#!lua flags=no-writes
-- Checks whether keys and entries have an owner.
--
-- KEYS[1]  first  the key of the first subject
-- ARGV...         the subjects, as `encodeSubject` encodes them
--
-- Returns `SubjectState[]`: the state of each subject.
--- @type SubjectState from ./subject.ts
local first = KEYS[1]
--- @include subject-state

return states_of(function() end)
