// The pipeline of find, sort and md5sum that our lists are measured by.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const PIPELINE = 'set -o pipefail; find "$0" -type f -print0 | LC_ALL=C sort -z | xargs -r0 md5sum'

/** What the real programs print for a directory. */
export async function md5Pipeline(directory: string, then = ''): Promise<string> {
  const { stdout } = await run('bash', ['-c', PIPELINE + then, directory], { maxBuffer: 1 << 28 })
  return stdout
}
