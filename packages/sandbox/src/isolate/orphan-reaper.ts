// Kills the child processes of a worker that was killed. A child exits when its IPC channel closes, unless it is stuck in a loop
// and can't react, and the programs that it has started would go on. Therefore, one small shell process holds the read end of a pipe
// whose write end belongs to the worker. The pipe closes no matter how the worker dies, and the shell then kills the process groups of
// the children. The shell has a group of its own, so that a kill of the worker's group does not end it as well.
import { type ChildProcess, spawn } from 'node:child_process'

/**
 * Reads `+ pid` and `- pid`, and kills the remaining groups at the end of its input. The first form of `kill` is that of POSIX, and the
 * second that of some small shells. It ignores signals that a service manager sends to every process.
 */
const SCRIPT = `
trap '' INT TERM HUP
left=' '
while read -r what pid; do
  case $what in
    +) left="$left$pid " ;;
    -) left="\${left%% $pid *} \${left#* $pid }" ;;
  esac
done
for pid in $left; do kill -s KILL -- "-$pid" || kill -s KILL "-$pid"; done
`

export interface OrphanReaper {
  watch(pid: number): void
  /** Must be called before the process id can be reused. */
  forget(pid: number): void
  close(): Promise<void>
}

/**
 * Creates the reaper, which starts its shell with the first child. If the system has no shell, children that are stuck in a loop
 * and programs that handlers have started outlive a killed worker.
 */
export function openOrphanReaper(onError: (error: Error) => void): OrphanReaper {
  let shell: ChildProcess | undefined
  let closed: Promise<unknown> = Promise.resolve()

  const start = (): ChildProcess => {
    const started = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    closed = new Promise<void>((resolve) => {
      started.once('close', () => resolve())
      started.once('error', (error) => {
        onError(error)
        resolve()
      })
    })
    // Without a listener, losing the shell would end the worker.
    started.stdin?.on('error', onError)
    return started
  }
  const send = (what: '+' | '-', pid: number): void => {
    shell ??= start()
    shell.stdin?.write(`${what} ${pid}\n`)
  }

  return {
    watch: (pid) => send('+', pid),
    forget: (pid) => send('-', pid),
    async close() {
      shell?.stdin?.end()
      await closed
    },
  }
}
