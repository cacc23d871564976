// Adds several tasks to one queue, all or none.
//
// If a script fails, Redis does not undo what the script has already written. This script therefore prepares every task before it
// adds the first one: the step before the add decides whether the task may be added, and writes nothing if the task has no unique
// key. BullMQ's three adds, together with Bullpen's steps, are functions whose parameters hide Redis's KEYS and ARGV.

import type { Add } from '../../internals/composition/add-arguments.ts'
import type { AddReply } from '../../internals/composition/add-job.ts'
import { ADD } from '../../internals/composition/add-steps.ts'
import { type BullmqScript, bullmqScripts, textWith } from '../../internals/composition/composed-scripts.ts'
import { readArguments } from '../../internals/composition/steps.ts'
import { STATUS_INDEX } from '../../internals/status/status-index.ts'
import { bytesOf } from '../../internals/status/task-charge.ts'
import { RECENTLY_REMOVED } from '../includes/ended-tasks/removed-tasks.ts'
import { defineScript } from '../script.ts'

/** The number of arguments of one add without its base: BullMQ's and those of Bullpen's steps. */
const ARGUMENTS_OF_ADD = ADD.own + ADD.extra.length

const ADDS: readonly BullmqScript[] = bullmqScripts().filter(({ name }) =>
  ['addStandardJob', 'addDelayedJob', 'addPrioritizedJob'].includes(name),
)

/**
 * Returns a Lua function that prepares one add. If the task is refused or nothing needs to be added, the function returns the
 * reply. Otherwise, it returns the function that adds the task and returns the reply.
 */
const preparation = (script: BullmqScript): string => `
function prepare.${script.name}(KEYS, ARGV)
${readArguments(ADD.extra, ADD.own)}
local function bullmq()
${textWith(ADD, script)}
end
${ADD.before}
return function()
index.added = false
local answer = bullmq()
${ADD.after}
return answer
end
end`

/** A task's follow-ups among the arguments of its add. */
const FOLLOW_UPS = `args[${ADD.own + ADD.extra.indexOf('followUps') + 1}]`

const ARGUMENTS = Array.from({ length: ARGUMENTS_OF_ADD }, (_, i) => `ARGV[at + ${i + 1}]`).join(', ')

/**
 * Lua functions: `prepare.<script>(KEYS, ARGV)` prepares one add with the BullMQ script of that name. If the task is refused or nothing
 * needs to be added, it returns the reply, and otherwise the function that adds the task and returns the reply. `base` is the prefix of
 * the queue's keys.
 */
export const PREPARE_ADDS = `
local call = redis.call
${STATUS_INDEX}
local index = status_index(base)
local watch = index.watch
local prepare = {}
-- The queue needs room for each task in addition to the tasks before it.
local pending_tasks, pending_bytes = 0, 0
-- ioredis may send this script twice.
local may_be_resent = call('EXISTS', base .. '${RECENTLY_REMOVED}') == 1
${ADDS.map(preparation).join('\n')}
`

/** Returns the arguments of `add-all` for one task. */
export function listedAdd({ script, own, extra }: Add): readonly string[] {
  return [script, ...own, ...extra]
}

/**
 * - KEYS: any key of the queue.
 * - ARGV: the base of the queue's keys, a JSON object with the keys of each BullMQ script, by its name, and for each
 *   task, the name of its BullMQ script and the script's arguments.
 *
 * Returns the reply of each add, in the order of the tasks. If a task is refused, nothing is added, and the reply of each task
 * that would have been added is ''.
 */
export const addAll = defineScript({
  name: 'add-all',
  kind: 'adds',
  keys: ['any'],
  args: ['base', 'keys'],
  lua: `${PREPARE_ADDS}
local keys_of = cjson.decode(keys)
local adds, replies, refused = {}, {}, false
for at = 3, #ARGV, ${ARGUMENTS_OF_ADD + 1} do
  local args = { ${ARGUMENTS} }
  local reply = prepare[ARGV[at]](keys_of[ARGV[at]], args)
  local n = #replies + 1
  if type(reply) == 'function' then
    adds[n], replies[n] = reply, ''
    pending_tasks, pending_bytes = pending_tasks + 1, pending_bytes + ${bytesOf('args[2]', FOLLOW_UPS)}
  else
    replies[n] = reply
    refused = refused or reply == 'reused' or type(reply) == 'table'
  end
end
if refused then return replies end
for n = 1, #replies do
  if adds[n] then replies[n] = adds[n]() end
end
return replies
`,
  answer: (reply) => reply as readonly AddReply[],
})
