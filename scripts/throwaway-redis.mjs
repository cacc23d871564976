// A Redis for one run alone: its data is in a temporary directory, and neither outlives this process.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resolveRedis } from './redis.mjs'

/**
 * Ends the server and removes the directory when this process dies, however it dies: a shell waits for the end of its
 * input, which this process holds. Returns what calls it off.
 * @param {{ pid: number, dir: string }} options
 */
export function endWithMe({ pid, dir }) {
  const script = `trap '' INT TERM HUP; cat > /dev/null; kill "$0"; sleep 1; rm -rf "$1"`
  const shell = spawn('sh', ['-c', script, String(pid), dir], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  shell.unref()
  shell.stdin.unref()
  return () => shell.kill('SIGKILL')
}

/**
 * @param {string} name of what it is for, in the directory's name
 * @param {Parameters<typeof resolveRedis>[0]} [options]
 */
export async function throwawayRedis(name, options = {}) {
  const dir = mkdtempSync(join(tmpdir(), `bullpen-${name}-`))
  const { url, pid, stop } = await resolveRedis({ ...options, dataDir: dir }).catch((error) => {
    rmSync(dir, { recursive: true, force: true })
    throw error
  })
  const callOff = pid === undefined ? () => {} : endWithMe({ pid, dir })
  return {
    url,
    async end() {
      await stop()
      callOff()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
