// Starts a Redis for a single run. Its data is in a temporary directory, and neither the server nor the data outlives this
// process.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resolveRedis } from './resolve.mjs'

/**
 * Stops the server and removes the directory when this process exits, even on SIGKILL. This works because a shell waits for the
 * end of its input, which this process keeps open. Returns a function that cancels this.
 * @param {{ pid: number, dir: string }} options
 */
export function stopWithThisProcess({ pid, dir }) {
  const script = `trap '' INT TERM HUP; cat > /dev/null; kill "$0"; sleep 1; rm -rf "$1"`
  const shell = spawn('sh', ['-c', script, String(pid), dir], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  shell.unref()
  shell.stdin.unref()
  return () => shell.kill('SIGKILL')
}

/**
 * @param {string} name part of the directory's name
 * @param {Parameters<typeof resolveRedis>[0]} [options]
 */
export async function temporaryRedis(name, options = {}) {
  const dir = mkdtempSync(join(tmpdir(), `bullpen-${name}-`))
  const { url, pid, stop } = await resolveRedis({ ...options, dataDir: dir }).catch((error) => {
    rmSync(dir, { recursive: true, force: true })
    throw error
  })
  const cancelCleanup = pid === undefined ? () => {} : stopWithThisProcess({ pid, dir })
  return {
    url,
    async end() {
      await stop()
      cancelCleanup()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
