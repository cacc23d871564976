// The steps in BullMQ's scripts that quarantine tasks whose process has died.
//
// These fields of a job belong to the quarantine. A job whose process was never lost has none of them:
//
// - `deaths`: how many processes have died because of the task, as far as is known. BullMQ's own counter, `stc`, is never reset,
//   and also counts deaths that another task has caused.
// - `alone`: the fencing token of an attempt that runs alone in its worker's process. Any other attempt of a quarantined task runs
//   in a child process, or waits in a worker. If the worker dies in the meantime, the task has not caused that death.
// - `diedIn`, `lostIn` and `livedIn`: the fencing tokens of three attempts: of the last one whose loss was counted as a death, of the last
//   one whose loss was counted in `stc`, and of the last one that has lost its lock although its process lives. The process notes this
//   itself (worker/note-survival.lua).
// - `waits`: set while the task is in the delayed set because a worker had no place for it. When it is due, it returns to the head
//   of the queue, so that it keeps its turn.

/**
 * Counts a death for the lost task `id`, unless its process lives, or the task was in quarantine and did not run in the worker's process.
 * If its process lives, takes back the loss that BullMQ has just counted. The same command reads what the attempt's event needs.
 */
export const COUNT_LOSS = `local starts, deaths, alone, lived, attempts, events, name, tags, group =
    unpack(call('HMGET', base .. id, 'ats', 'deaths', 'alone', 'livedIn', 'atm', 'events', 'name', 'tags', 'group'))
  if starts and lived == starts then uncount_loss(base .. id)
  elseif starts then
    call('HSET', base .. id, 'lostIn', starts)
    if not deaths or alone == starts then
      call('HINCRBY', base .. id, 'deaths', 1)
      call('HSET', base .. id, 'diedIn', starts)
    end
  end`
