// Runs the project's platform in this terminal until Ctrl-C. Both `npm start` and `npm run dev` use this module.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { styleText } from 'node:util'
import { explain } from '../system/user-error.mjs'
import { banner } from './banner.mjs'
import { createPlatform, root } from './platform.mjs'

const SAME_KEY_PRESS = 500 // in ms, because npm, the shell and the terminal may each forward the same Ctrl-C

/**
 * @typedef {object} Options
 * @property {string} [home] where data, key and logs are kept
 * @property {boolean} [fresh] delete all data first
 * @property {boolean} [observe] start Prometheus
 * @property {boolean} [installRedis] install Redis if there is none
 * @property {boolean} [handlerLogs] show what handlers log
 * @property {boolean} [anyPorts] use any free ports instead of the well-known ones
 * @property {(platform: ReturnType<typeof createPlatform>, say: (line: string) => void) => void} [onUp]
 */

/** @param {Options} options */
export async function runInTerminal({ home = join(root, '.bullpen'), onUp, ...options }) {
  const say = (line) => console.log(styleText('dim', line, { stream: process.stdout }))
  const filesRoots = process.env.BULLPEN_WORKER_FILES_ROOTS?.split(':') ?? [root]
  const platform = createPlatform({ ...options, home, filesRoots, say })
  stopOnSignals(platform, home, say)
  try {
    const details = await platform.up()
    console.log(banner({ ...details, root, logs: join(home, 'logs') }))
    onUp?.(platform, say)
  } catch (error) {
    if (platform.stopping) return
    console.error(explain(error))
    process.exitCode = 1
    await platform.down()
    process.exit()
  }
}

function stopOnSignals(platform, home, say) {
  let firstAt
  const stop = async () => {
    if (firstAt !== undefined) {
      if (performance.now() - firstAt < SAME_KEY_PRESS) return
      say('Stopping everything immediately.')
      process.exitCode = 1
      return platform.kill()
    }
    firstAt = performance.now()
    say('Draining the workers. Press Ctrl-C again to stop immediately.')
    await platform.down()
    const data = relative(process.cwd(), home)
    say(`Stopped.${existsSync(home) ? ` Data is kept in ${data}; \`npm start -- --fresh\` deletes it.` : ''}`)
    process.exit()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, stop)
}
