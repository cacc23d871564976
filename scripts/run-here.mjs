// Runs the project's own platform in this terminal, until Ctrl-C: what `start` and `dev` have in common.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { styleText } from 'node:util'
import { createPlatform, root } from './platform.mjs'
import { explain } from './user-error.mjs'
import { welcome } from './welcome.mjs'

const ONE_PRESS = 500 // ms: npm, the shell and the terminal may each pass the same Ctrl-C on

/**
 * @typedef {object} Options
 * @property {string} [home] where its data, key and logs are kept
 * @property {boolean} [fresh] forget all data first
 * @property {boolean} [anyPorts] take any free ports instead of the well-known ones
 * @property {(platform: ReturnType<typeof createPlatform>, say: (line: string) => void) => void} [onUp]
 */

/** @param {Options} options */
export async function runHere({ home = join(root, '.bullpen'), fresh = false, anyPorts = false, onUp }) {
  const say = (line) => console.log(styleText('dim', line, { stream: process.stdout }))
  const filesRoots = process.env.BULLPEN_WORKER_FILES_ROOTS?.split(':') ?? [root]
  const platform = createPlatform({ home, filesRoots, fresh, anyPorts, say })
  endOnSignals(platform, home, say)
  try {
    const where = await platform.up()
    console.log(welcome({ ...where, root, logs: join(home, 'logs') }))
    onUp?.(platform, say)
  } catch (error) {
    if (platform.stopping) return
    console.error(explain(error))
    process.exitCode = 1
    await platform.down()
    process.exit()
  }
}

function endOnSignals(platform, home, say) {
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
    const kept = relative(process.cwd(), home)
    say(
      `Everything has ended.${existsSync(home) ? ` Data is kept in ${kept}; \`npm start -- --fresh\` forgets it.` : ''}`,
    )
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end)
}
