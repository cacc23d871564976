// Runs the project's own platform in this terminal, until Ctrl-C: what `start` and `dev` have in common.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { createPlatform, PlatformError, root } from './platform.mjs'
import { welcome } from './welcome.mjs'

const home = join(root, '.bullpen')
const ONE_PRESS = 500 // ms: npm, the shell and the terminal may each pass the same Ctrl-C on

/**
 * @param {{ fresh?: boolean, onUp?: (platform: ReturnType<typeof createPlatform>, say: (line: string) => void) => void }} options
 */
export async function runHere({ fresh = false, onUp }) {
  const say = (line) => console.log(styleText('dim', line, { stream: process.stdout }))
  const filesRoots = process.env.BULLPEN_WORKER_FILES_ROOTS?.split(':') ?? [root]
  const platform = createPlatform({ home, filesRoots, fresh, say })
  endOnSignals(platform, say)
  try {
    const where = await platform.up()
    console.log(welcome({ ...where, root, logs: join(home, 'logs') }))
    onUp?.(platform, say)
  } catch (error) {
    if (platform.stopping) return
    console.error(error instanceof PlatformError ? `bullpen: ${error.message}` : error)
    process.exitCode = 1
    await platform.down()
    process.exit()
  }
}

function endOnSignals(platform, say) {
  let first
  const end = async () => {
    if (first !== undefined) {
      if (performance.now() - first < ONE_PRESS) return
      say('Ending everything at once.')
      process.exitCode = 1
      return platform.kill()
    }
    first = performance.now()
    say('Draining the workers. Ctrl-C again ends them at once.')
    await platform.down()
    say(
      `Everything has ended.${existsSync(home) ? ' Data is kept in .bullpen; `npm start -- --fresh` forgets it.' : ''}`,
    )
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end)
}
