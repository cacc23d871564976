// Starts a Redis for a single run. Its data is in a temporary directory, and neither the server nor the data outlives this
// process.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stopWithThisProcess } from '../system/stop-with-this-process.mjs'
import { resolveRedis } from './resolve.mjs'

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
