// Describes the keys of a group. All of them expire.
import type { GroupKeys } from '../../keys.ts'
import type { KeyRow } from './key-row.ts'

type Row = KeyRow<GroupKeys>

/** What all keys of a group have in common. */
const ofGroup = {
  ends: 'expires when the group has been kept long enough after its end, and two days after its total timeout at the latest',
  expires: true,
} as const

export const GROUP_ROWS = {
  meta: { ...ofGroup, type: 'hash', holds: "a group's state, its settings and its counts" },
  members: { ...ofGroup, type: 'string', holds: "three bits for each of a group's members: how it has ended" },
  queues: { ...ofGroup, type: 'string', holds: "four bits for each of a group's members: its queue" },
  requests: { ...ofGroup, type: 'hash', holds: 'the requests that have added members to a group' },
  outbox: {
    ...ofGroup,
    type: 'stream',
    holds: 'the members of a group that are not enqueued yet, and what follows from its cancellation',
    ends: 'deleted when its last entry is delivered; expires with the other keys of the group',
  },
} as const satisfies Record<Exclude<keyof GroupKeys, 'base'>, Row>
