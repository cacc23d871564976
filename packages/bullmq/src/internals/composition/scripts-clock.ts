// Makes a BullMQ Worker's scripts use Redis's clock. BullMQ passes the machine's time as a script argument, and this module
// replaces that argument before the script is sent.
//
// Times are translated in both directions, with `skew = Date.now() - now()`, where `now()` is Redis's time:
//   - To Redis: the time argument of each script in TIME_AT becomes `now()`.
//   - From Redis: BullMQ computes how long to wait for the next delayed job as `due - Date.now()`. Since `due` is in Redis's
//     time, BullMQ is given `due + skew` instead, so that its difference is `due - now()`.
// `job.moveToDelayed(timestamp)` needs no change: BullMQ turns the timestamp into a delay (`timestamp - Date.now()`) and
// the script adds that delay to its time argument.

/**
 * For each script that depends on the time, the index of the time among its keys and arguments. These scripts decide which jobs
 * are due and when a retry or a snooze is due, or store when a job started or ended. Scripts that add a job use the job's own
 * timestamp.
 */
export const TIME_AT: ReadonlyMap<string, number> = new Map([['moveStalledJobsToWait', 11]])

export interface TimeTranslation {
  /** Replaces the time among a script's arguments. */
  toRedis(script: string, args: unknown[]): void
  /** Translates a time that BullMQ compares with the machine's clock. */
  toMachine(time: number): number
}

/** Creates a translation. `now` returns whole ms since 1970, by the clock that all of the queue's processes share. */
export function timeTranslation(now: () => number): TimeTranslation {
  const toMachine = (time: number): number => (time > 0 ? time + (Date.now() - now()) : time)
  return {
    toRedis(script, args) {
      const at = TIME_AT.get(script)
      // BullMQ builds this array for a single call, so it can be changed in place.
      if (at !== undefined) args[at] = now()
    },
    toMachine,
  }
}
