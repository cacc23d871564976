// Defines the Lua that checks whether keys and entries have an owner, with the subjects that it checks.
import { listOf, nameIn, prioritiesOf } from '../../internals/turns/lanes.ts'
import type { Condition, KeyType } from '../../orphans/rows/key-row.ts'
import { TIME } from '../../store/scripts.ts'

/** A key, or an entry of a key, that may be an orphan. All keys of one call share a hash slot. */
export interface Subject {
  readonly key: string
  /** Undefined if no type is expected, because the table of keys does not contain the key. */
  readonly type: KeyType | undefined
  /** Whether the key must have a time to live. */
  readonly expires: boolean
  /** The entry, and its value when it was read, if the subject is an entry. An entry that has changed since has an owner. */
  readonly entry: { readonly name: string; readonly value: string } | undefined
  /** The conditions of which one must hold. If there are none, the subject has an owner as long as it exists. */
  readonly owned: readonly Condition[]
  /** The keys that are deleted with the key. */
  readonly deletedWith: readonly string[]
}

/**
 * - `owned`: the subject has an owner, or does not exist any more.
 * - `unknown`: the key exists, but the table of keys does not contain it.
 * - `wrong_type`: the key does not have the type that the table names.
 * - `no_owner`: none of the conditions holds.
 * - `no_expiry`: the key has an owner, but no time to live, although every key of its kind should have one.
 */
export const SUBJECT_STATES = ['owned', 'unknown', 'wrong_type', 'no_owner', 'no_expiry'] as const

export type SubjectState = (typeof SUBJECT_STATES)[number]

/** How Redis names the types. */
const REDIS_TYPES: Readonly<Record<KeyType, string>> = {
  string: 'string',
  list: 'list',
  set: 'set',
  'sorted set': 'zset',
  hash: 'hash',
  stream: 'stream',
}

/** Lua lines that return the state of each subject. `remove` is a Lua statement for a subject without an owner. */
export const checking = (remove = ''): string => `${TIME}
local now, at, states = millis(), 1, {}
local function take()
  at = at + 1
  return ARGV[at - 1]
end
-- Returns nil if the key has another type.
local function ask(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then return nil end
  return reply
end
local holds = {
  exists = function(key) return ask('EXISTS', key) == 1 end,
  scored = function(key, member) return ask('ZSCORE', key, member) end,
  field = function(key, name) return ask('HEXISTS', key, name) == 1 end,
  listed = function(key, element) return ask('LPOS', key, element) end,
  laned = function(base, id)
    local lane = ask('HGET', base .. id, 'lane')
    local name = lane and ${nameIn('lane')}
    return name and (ask('ZSCORE', ${prioritiesOf('name')}, id) or ask('LPOS', ${listOf('name')}, id))
  end,
  expires = function(key) return ask('PTTL', key) >= 0 end,
  points = function(key, prefix)
    local id = ask('GET', key)
    return id and ask('EXISTS', prefix .. id) == 1
  end,
  later = function(_, time) return now < tonumber(time) end,
}
-- Returns whether the entry is still there with the value with which it was read.
local function is_there(key, kind, entry, value)
  if kind == 'hash' then return ask('HGET', key, entry) == value end
  if kind == 'zset' then return ask('ZSCORE', key, entry) == value end
  if kind == 'set' then return ask('SISMEMBER', key, entry) == 1 end
  return ask('LPOS', key, entry)
end
while at <= #ARGV do
  local key, kind, expires, is_entry, entry, value = take(), take(), take() == '1', take() == '1', take(), take()
  local conditions, is_owned = tonumber(take()), false
  local none = conditions == 0
  for _ = 1, conditions do
    local condition, of, argument = take(), take(), take()
    is_owned = is_owned or holds[condition](of, argument)
  end
  local with = {}
  for i = 1, tonumber(take()) do with[i] = take() end
  local found = redis.call('TYPE', key).ok
  local state = 'owned'
  if found ~= 'none' then
    if kind == '' then state = 'unknown'
    elseif found ~= kind then state = 'wrong_type'
    elseif not none and not is_owned then
      -- Looking for an entry may take long, so this comes last.
      if not is_entry or is_there(key, kind, entry, value) then state = 'no_owner' end
    elseif expires and redis.call('PTTL', key) < 0 then state = 'no_expiry'
    end
  end
${remove === '' ? '' : `  if state == 'no_owner' then\n${remove}\n  end`}
  states[#states + 1] = state
end
return states
`

export const stateOfEach = (reply: unknown): readonly SubjectState[] => reply as SubjectState[]

export function encodeSubject({ key, type, expires, entry, owned, deletedWith }: Subject): string[] {
  return [
    key,
    type === undefined ? '' : REDIS_TYPES[type],
    expires ? '1' : '',
    entry === undefined ? '' : '1',
    entry?.name ?? '',
    entry?.value ?? '',
    String(owned.length),
    ...owned.flatMap((condition) => [condition.kind, condition.key, condition.argument]),
    String(deletedWith.length),
    ...deletedWith,
  ]
}
