// How many deaths of its process a task survives.

/** BullMQ's own default, 1, buries bystanders of two crashes. */
export const DEATHS_AT_MOST = 10
