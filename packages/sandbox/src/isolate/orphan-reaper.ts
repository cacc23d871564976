// Ends the children of a parent that was killed. A child sees its channel close and exits, unless it is in a loop: then
// nothing within it can, so one small shell waits for the parent's end of a pipe to close, as it does however it dies.
import { type ChildProcess, spawn } from 'node:child_process'

/** Reads `+ pid` and `- pid`; at the end of its input, kills those that are left. Signals to the group are for the parent. */
const SCRIPT = `
trap '' INT TERM HUP
left=' '
while read -r what pid; do
  case $what in
    +) left="$left$pid " ;;
    -) left="\${left%% $pid *} \${left#* $pid }" ;;
  esac
done
for pid in $left; do kill -9 "$pid"; done
`

export interface Undertaker {
  born(pid: number): void
  /** To be said before its process id can be given to another process. */
  died(pid: number): void
  close(): Promise<void>
}

/** Started with the first child. Where there is no shell, children in a loop outlive a killed parent. */
export function awaitUndertaker(warn: (error: Error) => void): Undertaker {
  let shell: ChildProcess | undefined
  let ended: Promise<unknown> = Promise.resolve()

  const start = (): ChildProcess => {
    const started = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'] })
    ended = new Promise<void>((resolve) => {
      started.once('close', () => resolve())
      started.once('error', (error) => {
        warn(error)
        resolve()
      })
    })
    // A shell that has gone away is no reason for the worker to go, too.
    started.stdin?.on('error', warn)
    return started
  }
  const tell = (what: '+' | '-', pid: number): void => {
    shell ??= start()
    shell.stdin?.write(`${what} ${pid}\n`)
  }

  return {
    born: (pid) => tell('+', pid),
    died: (pid) => tell('-', pid),
    async close() {
      shell?.stdin?.end()
      await ended
    },
  }
}
