#!lua flags=allow-oom
-- Lets a parent no longer wait for a child, in place of BullMQ's `removeChildDependency`. If it was the last one, the parent starts.
--
-- KEYS  job     the child
-- ARGV  parent  the key of the parent
--
-- Returns `number`: 0; 1 if the parent does not wait for the child; or BullMQ's code if one of them does not exist: -1 for the child,
-- and -5 for the parent.
--- @include remove-ended

if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('EXISTS', parent) == 0 then
  return -5
end
if redis.call('SISMEMBER', parent .. ':dependencies', job) == 0 then
  return 1
end
leave_parent(job, parent)
redis.call('HDEL', job, 'parentKey', 'parent')
return 0
