// Ends a server together with the process that started it.
import { spawn } from 'node:child_process'

/**
 * Stops the server when this process exits, even on SIGKILL, and then removes `dir` if it is given. This works because a shell waits
 * for the end of its input, which this process keeps open. Returns a function that cancels this.
 * @param {{ pid: number, dir?: string }} options
 */
export function stopWithThisProcess({ pid, dir }) {
  const remove = dir === undefined ? '' : 'sleep 1; rm -rf "$1"'
  const script = `trap '' INT TERM HUP; cat > /dev/null; kill "$0"; ${remove}`
  const args = ['-c', script, String(pid), ...(dir === undefined ? [] : [dir])]
  const shell = spawn('sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  shell.unref()
  shell.stdin.unref()
  return () => shell.kill('SIGKILL')
}
