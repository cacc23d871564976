// Creates and parses the ids of groups. An id is generated before Redis is called, and sorts by time.
import { BullpenError } from '../errors/errors.ts'
import { createTaskId, readTaskId } from './task-id.ts'

declare const brand: unique symbol

/** `group-<26 characters>`, where the characters are those of a task id: 48 bits of time and 80 random bits. */
export type GroupId = string & { readonly [brand]: 'GroupId' }

const PREFIX = 'group'

/** Creates the id of a group. `now` is the current time in milliseconds since 1970, and `random` contains at least 10 random bytes. */
export function createGroupId(now: number, random: Uint8Array): GroupId {
  return createTaskId(PREFIX, now, random) as string as GroupId
}

/** Reads the creation time from an id, in ms since 1970. Returns undefined if the string is not a group id. */
export function readGroupId(text: string): { readonly id: GroupId; readonly createdAt: number } | undefined {
  const read = readTaskId(text)
  return read?.queue === PREFIX ? { id: text as GroupId, createdAt: read.createdAt } : undefined
}

/** Returns the string as a group id. @throws BullpenError `group_not_found` if it is not one. */
export function groupId(text: string): GroupId {
  const read = readGroupId(text)
  if (read === undefined) {
    throw new BullpenError(
      'group_not_found',
      `${JSON.stringify(text)} is not a group id; one looks like 'group-01jd3v7n8q0000000000000000'`,
    )
  }
  return read.id
}
