// The bounds of a queue's outbox, and how a full one closes its queue (../store/lua/includes/outbox.lua).

/** How many entries an outbox may have before its queue is closed for fetching. */
export const MAX_OUTBOX_ENTRIES = 10_000
/** The same for the total size of the entries, in bytes. */
export const MAX_OUTBOX_BYTES = 32 * 2 ** 20

/** The value of BullMQ's field `paused` while a full outbox closes the queue. A command that pauses the queue stores another value. */
export const CLOSED_BY_OUTBOX = 'outbox'
