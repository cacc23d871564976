// Makes a BullMQ Worker's scripts use Redis's clock: BullMQ passes the machine's time as a script argument, and this
// replaces that argument on its way.
//
// Two directions, with `skew = Date.now() - now()`, where `now()` is Redis's time:
//   - to Redis: the time argument of each script in TIME_AT becomes `now()`.
//   - from Redis: BullMQ computes how long to wait for the next delayed job as `due - Date.now()`. `due` is in Redis's
//     time, so it is answered as `due + skew`, and BullMQ's difference is `due - now()`.
// `job.moveToDelayed(timestamp)` needs no change: BullMQ turns the timestamp into a delay (`timestamp - Date.now()`) and
// the script adds that delay to its time argument.
import type { Worker } from 'bullmq'

/**
 * The index of the time among the keys and arguments of each script that decides by time: which jobs are due, when a retry
 * or a snooze is due, when a job was started and when it ended. Scripts that add a job use the job's own timestamp.
 */
export const TIME_AT: ReadonlyMap<string, number> = new Map([
  ['moveToActive', 12],
  ['moveToDelayed', 12],
  ['moveToFinished', 15],
  ['moveStalledJobsToWait', 11],
  ['retryJob', 12],
])
/** The index, in the answer of the scripts that fetch, of the time when the next delayed job is due. */
const NEXT_DUE_AT = 3

/** `now`: whole ms since 1970 by the clock that all processes of the queue agree on. */
export function setScriptClock(backend: Worker['backend'], now: () => number): void {
  const exec = backend.execCommand.bind(backend)
  const waitForJob = backend.waitForJob.bind(backend)
  const toMachineTime = (time: number): number => (time > 0 ? time + (Date.now() - now()) : time)

  const translateAnswer = (answer: unknown): unknown => {
    const due = Array.isArray(answer) ? Number(answer[NEXT_DUE_AT] ?? 0) : 0
    if (due > 0) (answer as unknown[])[NEXT_DUE_AT] = toMachineTime(due)
    return answer
  }
  backend.execCommand = (client, name, args: unknown[]) => {
    const at = TIME_AT.get(name)
    if (at === undefined) return exec(client, name, args)
    // BullMQ builds this array for one call. Changing it in place avoids a copy for each job.
    args[at] = now()
    const answer = exec(client, name, args)
    return answer instanceof Promise ? answer.then(translateAnswer) : answer
  }
  backend.waitForJob = async (seconds) => {
    const marker = await waitForJob(seconds)
    return marker && { ...marker, score: toMachineTime(marker.score) }
  }
}
