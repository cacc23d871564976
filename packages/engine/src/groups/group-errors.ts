// Creates the errors for requests that a group refuses.
import { BullpenError, type GroupId } from '@bullpen/contract'
import { MAX_GROUP_MEMBERS, MAX_GROUP_QUEUES } from '@bullpen/contract/internal'
import { invalidRequest } from '../task/invalid-request.ts'

/** Why a group accepts no members. `reused`: another request had the same key. `queues`: the members have too many queues. */
export type AddRefusal = 'sealed' | 'ended' | 'full' | 'queues' | 'reused' | 'busy'

export function groupNotFound(id: GroupId): BullpenError {
  return new BullpenError(
    'group_not_found',
    `group ${id} not found; a group is deleted when its 'keep' (one day by default) has passed since its end`,
  )
}

/** Returns the error for a request to create a group whose id another group has. */
export function groupExists(id: GroupId): BullpenError {
  return new BullpenError(
    'idempotency_key_reused',
    `group ${id} already exists with different settings or tasks; send exactly the same request to get that group, or choose another id`,
  )
}

export function addRefused(id: GroupId, refusal: AddRefusal): BullpenError {
  switch (refusal) {
    case 'sealed':
      return new BullpenError('group_sealed', `group ${id} is sealed, so no members can be added; create another group`)
    case 'ended':
      return new BullpenError('group_ended', `group ${id} has ended, so no members can be added; create another group`)
    case 'full':
      return new BullpenError(
        'group_full',
        `group ${id} would have more than ${MAX_GROUP_MEMBERS.toLocaleString('en')} members; divide the work among several groups`,
      )
    case 'busy':
      return new BullpenError(
        'group_busy',
        `too many members of group ${id} wait to be enqueued; send the request again in a second`,
      )
    case 'reused':
      return new BullpenError(
        'idempotency_key_reused',
        `another request to group ${id} had the same idempotency key; use a new key for a different request`,
      )
    case 'queues': {
      const message = `the members of a group may belong to at most ${MAX_GROUP_QUEUES} queues; divide them among several groups`
      return invalidRequest('/tasks', message)
    }
  }
}
