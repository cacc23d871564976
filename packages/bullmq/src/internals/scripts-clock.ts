// The clock of a BullMQ worker's scripts: they take the time as an argument, and are given that of Redis instead of ours.
import type { Worker } from 'bullmq'

/**
 * Where each script that decides by the time has it among its keys and arguments: what is due, when a retry or a snooze is, when a
 * job was taken and when it ended. Those that add a job have it from the job itself.
 */
export const TIME_AT: ReadonlyMap<string, number> = new Map([
  ['moveToActive', 12],
  ['moveToDelayed', 12],
  ['moveToFinished', 15],
  ['moveStalledJobsToWait', 11],
  ['retryJob', 12],
])
/** In the answer of those that fetch: when the next delayed job is due. */
const NEXT_DUE_AT = 3

/**
 * `now`: whole ms since 1970 by the clock that all of the queue's processes agree on. What comes back is told by the machine's own, which
 * BullMQ compares it with.
 */
export function setClock(backend: Worker['backend'], now: () => number): void {
  const exec = backend.execCommand.bind(backend)
  const waitForJob = backend.waitForJob.bind(backend)
  const byOurs = (time: number): number => (time > 0 ? time + (Date.now() - now()) : time)

  backend.execCommand = (client, name, args: unknown[]) => {
    const at = TIME_AT.get(name)
    if (at === undefined) return exec(client, name, args)
    // Made for this one call: a copy for each job would cost more than the rest of this.
    args[at] = now()
    const answer = exec(client, name, args)
    return answer instanceof Promise ? answer.then(told) : answer
  }
  const told = (answer: unknown): unknown => {
    const due = Array.isArray(answer) ? Number(answer[NEXT_DUE_AT] ?? 0) : 0
    if (due > 0) (answer as unknown[])[NEXT_DUE_AT] = byOurs(due)
    return answer
  }
  backend.waitForJob = async (seconds) => {
    const marker = await waitForJob(seconds)
    return marker && { ...marker, score: byOurs(marker.score) }
  }
}
