// Reads a script's command line. --help prints the usage. An unknown option or a second value ends the script with a one-line error.
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
    const { values, positionals, tokens } = parseArgs({ ...config, options: { ...config.options, help }, tokens: true })
    if (values.help) {
      console.log(`usage: ${usage}`)
      process.exit(0)
    }
    refuseSecondValues(tokens, config.options)
    return { values, positionals }
  } catch (error) {
    const [line] = usage.split('\n')
    return explainAndExit(new UserError(`${error.message.split('. ')[0]}\nusage: ${line}`))
  }
}

/** The scripts that use this module run before the packages are installed, so they cannot use `repeatedOption` of the contract. */
function refuseSecondValues(tokens, options = {}) {
  const named = tokens
    .filter(({ kind, name }) => kind === 'option' && options[name]?.type === 'string')
    .map(({ name }) => name)
  const repeated = named.find((name, i) => options[name].multiple !== true && named.indexOf(name) < i)
  if (repeated !== undefined) throw new Error(`--${repeated} is specified twice`)
}

/** Prints the usage if the arguments contain --help. This is for scripts that pass their arguments on. */
export function helpOn(usage, args = process.argv.slice(2)) {
  if (!args.includes('--help') && args[0] !== '-h') return
  console.log(`usage: ${usage}`)
  process.exit(0)
}
