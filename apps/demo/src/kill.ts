// Kills a worker in the middle of the work, as a machine that fails would.

/** How far the work is when it happens: late enough for all workers to be busy, early enough to see the recovery. */
export const KILL_AFTER = 1 / 3

/** `host:pid:…`, as results tell the process that ran them. */
const PROCESS_ID = /:(\d+)(?::|$)/

/**
 * Kills one of `victims` with SIGKILL, one that has taken part if there is such. Returns its process id, or undefined
 * when none of them runs.
 */
export function killOne(
  victims: readonly number[],
  processes: ReadonlySet<string>,
  kill: (pid: number, signal: 'SIGKILL') => void = process.kill,
): number | undefined {
  const busy = new Set([...processes].map((name) => Number(PROCESS_ID.exec(name)?.[1])))
  const inOrder = victims.toSorted((a, b) => Number(busy.has(b)) - Number(busy.has(a)))
  return inOrder.find((pid) => {
    try {
      kill(pid, 'SIGKILL')
      return true
    } catch {
      return false
    }
  })
}
