// A hold: for a while nothing of a queue is started, in any process.

/** What BullMQ's counter of starts holds meanwhile: more than any rate. As a rate's own maximum it stands for no rate. */
export const HOLD_MARK = `${Number.MAX_SAFE_INTEGER}`
