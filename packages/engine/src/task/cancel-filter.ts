// A cancel rule: which tasks of a queue are cancelled, wherever they are and whoever takes them.
import type { CancelReason } from '@bullpen/contract'

/** Which tasks of a queue are to be cancelled. */
export interface CancelFilter {
  readonly queue: string
  /** A definition's name. Default: any. */
  readonly task?: string | undefined
  /** Default: whatever tags they have. */
  readonly tag?: string | undefined
  /** Those that were enqueued then or before, in ms since 1970 by the clocks of those who enqueued. */
  readonly before: number
  readonly reason: CancelReason
  /** Who asks, for the record. Default: the process that is asked. */
  readonly by?: string | undefined
}

export interface CancelRule extends CancelFilter {
  readonly id: string
  readonly by: string
  /** When it was requested, in ms since 1970 by the store's clock. */
  readonly at: number
}

export interface CancelProgress {
  readonly rule: CancelRule
  /** Tasks that were ended by it while nobody ran them. */
  readonly ended: number
  /** In ms since 1970; undefined while there may be tasks that it covers. */
  readonly doneAt: number | undefined
}

/** What a rule looks at. */
export interface CancelCandidate {
  readonly task: string
  readonly tags: readonly string[]
  readonly enqueuedAt: number
}

/** Of a task of the rule's queue. */
export function matches(rule: CancelFilter, { task, tags, enqueuedAt }: CancelCandidate): boolean {
  if (enqueuedAt > rule.before) return false
  if (rule.task !== undefined && rule.task !== task) return false
  return rule.tag === undefined || tags.includes(rule.tag)
}

/** A queue that shuts down lets finish what runs: its drain decides on that. */
export function stopsRunning({ reason }: CancelFilter): boolean {
  return reason === 'cancelled'
}

/** The tags in a stored envelope, which may be anything. */
export function tagsOf(envelope: unknown): readonly string[] {
  if (typeof envelope !== 'object' || envelope === null || !('tags' in envelope)) return NO_TAGS
  return Array.isArray(envelope.tags) ? envelope.tags : NO_TAGS
}

const NO_TAGS: readonly string[] = Object.freeze([])
