// Counts what the end of an attempt has shown about the services that its task depends on, in the script that ends the attempt.
//
// The calls are one more argument of that script, which is sent only if there are any (./steps.ts). They are counted
// where BullMQ's text removes the task from `active`: it has compared the lock by then, so an end that is refused or sent twice counts
// nothing. And it has not fetched the next task yet, so no task starts with the breaker of a moment ago.
import type { Random, ServiceCall } from '@bullpen/engine/internal'

/** Encodes calls as the argument `calls`. */
export function encodeCalls(calls: readonly ServiceCall[], random: Random): string {
  return JSON.stringify(calls.map(({ service, failed, slow }) => [service, failed, slow, random()]))
}

/** How BullMQ's scripts that end an attempt remove the job from `active`. */
const REMOVED_FROM_ACTIVE = /local (numRemovedElements|removed) = rcall\("LREM", KEYS\[[12]\], -1, (jobId|ARGV\[4\])\)/

/**
 * Returns the text of a script, so that it counts the calls of the attempt that it ends. The text needs `include`
 * (./created-includes.ts).
 */
export function withEndedCalls(text: string): string {
  return text.replace(
    REMOVED_FROM_ACTIVE,
    (line, count: string, id: string) => `${line}
if calls ~= '' and ${count} > 0 then include('gates').gates().count_calls(${id}, calls) end`,
  )
}
