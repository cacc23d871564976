// What a run of one attempt came to, as a test of a handler wants it: its output, or what it threw.
import type { TaskRun } from '@bullpen/testkit'

/** Throws what the handler threw; of a task that ended otherwise, its status. */
export function outputOf<Run extends TaskRun>(run: Run): Exclude<Run['output'], undefined> {
  const [thrown] = run.errors
  if (thrown !== undefined) throw thrown
  if (run.output === undefined) throw new Error(run.status)
  return run.output as Exclude<Run['output'], undefined>
}

/** These handlers read files and sockets, and a failure is looked at, not tried again. */
export const ONCE = { clock: 'real', attempts: 1 } as const
