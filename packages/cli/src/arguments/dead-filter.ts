// Parses the options that select dead tasks.
import { type DeadTaskFilter, milliseconds } from '@bullpen/contract'
import { ATTEMPT_END_STATES } from '@bullpen/contract/internal'
import type { CommandLine } from './command-line.ts'
import { parseChoice, parseDuration, requireValue, withoutUndefined } from './option-values.ts'
import { UsageError } from './usage-error.ts'

/** The options that select dead tasks, in addition to --queue. */
export const DEAD_FILTER_OPTIONS = [
  'task',
  'state',
  'code',
  'tag',
  'fingerprint',
  'older-than',
  'newer-than',
  'text',
] as const

/** @throws UsageError if an option is invalid, or if --queue is missing. */
export function deadFilter(values: CommandLine['values']): DeadTaskFilter {
  const { task, code, fingerprint, text, tag: tags = [] } = values
  const queue = requireValue('--queue QUEUE', values.queue)
  const [tag] = tags
  if (tags.length > 1) throw new UsageError('expected a single --tag')
  const state = parseChoice('--state', values.state, ATTEMPT_END_STATES)
  const endedUntil = timeBefore('--older-than', values['older-than'])
  const endedFrom = timeBefore('--newer-than', values['newer-than'])
  return withoutUndefined({ queue, task, state, code, tag, fingerprint, endedFrom, endedUntil, text })
}

/** Returns the time that lies this long in the past, in RFC 3339 format. */
function timeBefore(option: string, text: string | undefined): string | undefined {
  const duration = parseDuration(option, text)
  return duration === undefined ? undefined : new Date(Date.now() - milliseconds(duration)).toISOString()
}
