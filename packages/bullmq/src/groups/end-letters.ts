// The letter of each way in which a member of a group or a task of a run ends.

/** In entries of outboxes, and as a field of a group's hash that counts the members. */
export const END_LETTERS = { completed: 'c', dead: 'd', cancelled: 'x', expired: 'e', removed: 'r' } as const

export type EndLetter = (typeof END_LETTERS)[keyof typeof END_LETTERS]
