#!lua flags=no-writes
-- Reads the stored reply to a request to cancel one task.
--
-- KEYS  cancelReply
-- ARGV  request  the id of the request
--
-- Returns `[answer: string, task: string] | null`: the reply of the script `cancel-task`, or null if it has not stored one for this
-- request.
--- @include stored-reply

return stored_reply(cancelReply, request) or false
