// Returns the output of a task that ran once in its handler's test.
import type { TaskRun } from '@bullpen/testkit'

/**
 * Returns the task's output. Throws the error that the handler threw or, if the task ended in another way, an error with its
 * status.
 */
export function outputOf<Run extends TaskRun>(run: Run): Exclude<Run['output'], undefined> {
  const [thrown] = run.errors
  if (thrown !== undefined) throw thrown
  if (run.output === undefined) throw new Error(run.status)
  return run.output as Exclude<Run['output'], undefined>
}

/** These handlers read real files and sockets, and their failures are examined rather than retried. */
export const ONCE = { clock: 'real', attempts: 1 } as const
