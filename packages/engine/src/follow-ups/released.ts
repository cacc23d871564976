// Decides which follow-ups an end of a task releases. The Redis broker decides the same in Lua (packages/bullmq/src/outbox).
import type { FinalStatus } from '@bullpen/contract'
import {
  encodeNext,
  FOLLOW_UP_LETTERS,
  type FollowUpKind,
  NEXT_LETTER,
  type StoredFollowUp,
  type StoredTemplate,
} from '@bullpen/contract/internal'
import type { ReleasedFollowUp } from './template.ts'

const RELEASED_BY = {
  success: ['completed'],
  failure: ['dead', 'expired'],
  end: ['completed', 'dead', 'cancelled', 'expired'],
} as const satisfies Record<FollowUpKind, readonly FinalStatus[]>

/** Returns the follow-ups that are enqueued when a task ends with this status. A slot is a letter and the follow-up's number. */
export function releasedBy(
  followUps: readonly StoredFollowUp[],
  status: FinalStatus,
): readonly Pick<ReleasedFollowUp, 'slot' | 'template'>[] {
  return followUps.flatMap(({ on, template }, i) => {
    const statuses: readonly FinalStatus[] = RELEASED_BY[on]
    return statuses.includes(status) ? [{ slot: `${FOLLOW_UP_LETTERS[on]}${i + 1}`, template }] : []
  })
}

/** The letter of the slots of follow-ups that a handler has added. */
export const HANDLER_SLOT = 'h'

/** The slots of a task's own compensation, and of the one that follows a compensation. */
export const COMPENSATION_SLOTS = { own: 'c', next: NEXT_LETTER } as const

/** Returns the last of the compensations, which brings the others with it. */
export function releasedCompensation(
  templates: readonly StoredTemplate[],
  slot: (typeof COMPENSATION_SLOTS)[keyof typeof COMPENSATION_SLOTS],
): readonly Pick<ReleasedFollowUp, 'slot' | 'template' | 'next'>[] {
  const template = templates.at(-1)
  return template === undefined ? [] : [{ slot, template, next: encodeNext(templates.slice(0, -1)) }]
}
