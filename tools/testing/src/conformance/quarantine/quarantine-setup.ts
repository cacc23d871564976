// Provides a pool whose workers a test kills, and stand-ins for child processes, for the conformance tests of quarantine.
import type { TaskId } from '@bullpen/contract'
import type { IsolatedTask, Isolator, Outcome } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import type { OpenBackend } from '../backend.ts'
import { openSetup, type SetupOptions } from '../setup.ts'

/** Runs `run` in place of a child process. The attempts cannot be killed, because they end by themselves. */
export function childProcesses(run: (task: IsolatedTask) => Promise<Outcome>): Isolator {
  return {
    isolations: ['thread', 'process'],
    run: (task) => ({ outcome: run(task), signal() {}, kill() {} }),
    close: async () => {},
  }
}

export const returned = (n: number): Outcome => ({ kind: 'returned', output: { n } })
export const killed: Outcome = { kind: 'panicked', reason: 'isolate_died', error: new Error('exited with code 1') }

export async function openQuarantine(open: OpenBackend, options: SetupOptions = {}) {
  const setup = await openSetup(open, { locks: 'quick', ...options })
  const { backend, find } = setup
  return {
    ...setup,
    /** Kills the worker that runs these tasks. */
    die: (worker: string, ...ids: readonly TaskId[]) => backend.kill(worker, ids),
    lost: (id: TaskId, times = 1) =>
      eventually(
        async () => (await find(id)).attempts.filter(({ reason }) => reason === 'process_lost').length === times,
      ),
  }
}
