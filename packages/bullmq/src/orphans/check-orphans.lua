#!lua flags=no-writes
-- Checks whether keys and entries have an owner.
--
-- KEYS  first  the key of the first subject
-- ARGV[1...]  the subjects, as `encodeSubject` encodes them
--
-- Returns `SubjectState[]`: the state of each subject.
--- @type SubjectState from ./subject.ts
--- @include subject-state

return states_of(function() end)
