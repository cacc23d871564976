// Decides which tasks a cancel by filter matches, wherever a task is stored and whichever worker fetches it.
import type { CancelFilter, CancelRule } from '../ports/broker/cancelling.ts'

/** The properties of a task that a filter compares. */
export interface CancelCandidate {
  readonly task: string
  readonly tags: readonly string[]
  readonly enqueuedAt: number
  /** The group or the pipeline run to which the task belongs. */
  readonly group?: { readonly id: string } | undefined
}

/** Returns whether the rule matches a task in its queue. */
export function matches(rule: CancelFilter, { task, tags, enqueuedAt, group }: CancelCandidate): boolean {
  if (enqueuedAt > rule.before) return false
  if (rule.task !== undefined && rule.task !== task) return false
  if (rule.group !== undefined && rule.group !== group?.id) return false
  return rule.tag === undefined || tags.includes(rule.tag)
}

/**
 * Returns whether a stored rule applies to a task. A task that was retried by request after the rule had been stored was dead when the
 * tasks were cancelled, so the rule does not apply to the task. `retriedAt` is in ms since 1970.
 */
export function covers(
  rule: CancelRule,
  { retriedAt, ...candidate }: CancelCandidate & { readonly retriedAt?: number | undefined },
): boolean {
  return (retriedAt === undefined || retriedAt < rule.at) && matches(rule, candidate)
}

/**
 * Returns whether running attempts are signalled too. If the queue is shutting down, they are not, because the queue's drain
 * handles running attempts.
 */
export function stopsRunning({ reason }: CancelFilter): boolean {
  return reason === 'cancelled'
}

/** Returns the tags of a stored envelope, which may be malformed. */
export function tagsOf(envelope: unknown): readonly string[] {
  if (typeof envelope !== 'object' || envelope === null || !('tags' in envelope)) return NO_TAGS
  return Array.isArray(envelope.tags) ? envelope.tags : NO_TAGS
}

/** Returns when the task was last retried by request, in ms since 1970. The stored envelope may be malformed. */
export function retriedAtOf(envelope: unknown): number | undefined {
  if (typeof envelope !== 'object' || envelope === null || !('retriedAt' in envelope)) return undefined
  return typeof envelope.retriedAt === 'number' ? envelope.retriedAt : undefined
}

/**
 * Returns the id of the group or of the pipeline run to which a task belongs. The stored envelope may be malformed.
 */
export function groupIn(envelope: unknown): { readonly id: string } | undefined {
  if (typeof envelope !== 'object' || envelope === null) return undefined
  const group = 'group' in envelope ? envelope.group : 'run' in envelope ? envelope.run : undefined
  if (typeof group !== 'object' || group === null || !('id' in group)) return undefined
  return typeof group.id === 'string' ? { id: group.id } : undefined
}

const NO_TAGS: readonly string[] = Object.freeze([])
