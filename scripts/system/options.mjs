// Reads a script's command line. --help prints the usage, and an unknown option ends the script with a one-line error.
import { parseArgs } from 'node:util'
import { explainAndExit, UserError } from './user-error.mjs'

/**
 * @template {import('node:util').ParseArgsConfig} Config
 * @param {string} usage the whole command as the user types it, then what it does:
 *   `npm start -- [--fresh]\n\nStarts the platform.`
 * @param {Config} config
 */
export function readOptions(usage, config = {}) {
  try {
    const help = { type: /** @type {const} */ ('boolean'), short: 'h', default: false }
    const { values, positionals } = parseArgs({ ...config, options: { ...config.options, help } })
    if (values.help) {
      console.log(`usage: ${usage}`)
      process.exit(0)
    }
    return { values, positionals }
  } catch (error) {
    const [line] = usage.split('\n')
    return explainAndExit(new UserError(`${error.message.split('. ')[0]}\nusage: ${line}`))
  }
}

/** Prints the usage if the arguments contain --help. This is for scripts that pass their arguments on. */
export function helpOn(usage, args = process.argv.slice(2)) {
  if (!args.includes('--help') && args[0] !== '-h') return
  console.log(`usage: ${usage}`)
  process.exit(0)
}
