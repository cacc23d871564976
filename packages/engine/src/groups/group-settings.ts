// Checks the settings of a new group.
import type { GroupId, GroupSettings } from '@bullpen/contract'
import { GROUP_KEEP, GROUP_TOTAL_TIMEOUT, millisecondsWithin } from '@bullpen/contract/internal'
import type { NewGroup } from '../ports/broker/groups.ts'
import { invalidRequest } from '../task/invalid-request.ts'

/** Creates a group from its settings. @throws BullpenError `invalid_duration`. */
export function newGroup(
  id: GroupId,
  { onError = 'continue', totalTimeout = '7d', keep = '1d', onSuccess = [], onFailure = [], onEnd = [] }: GroupSettings,
  by: string,
  followUps?: NewGroup['followUps'],
): NewGroup {
  const totalMs = millisecondsWithin(totalTimeout, 'totalTimeout', GROUP_TOTAL_TIMEOUT)
  const keepMs = millisecondsWithin(keep, 'keep', GROUP_KEEP)
  const settings = JSON.stringify([onError, totalMs, keepMs, onSuccess, onFailure, onEnd])
  return { id, by, onError, totalMs, keepMs, followUps, settings }
}

/** The options of an enqueue that do not exist for members. */
export const NOT_FOR_MEMBERS = ['unique', 'whenFull', 'durability'] as const

/** Checks the options of a member. @throws BullpenError `invalid_request` if an option does not exist for members. */
export function checkMember(options: object): void {
  for (const option of NOT_FOR_MEMBERS) {
    if (option in options) throw invalidRequest(`/${option}`, `a member of a group cannot have ${option}; remove it`)
  }
}
