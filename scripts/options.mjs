// Reads a script's command line; what it does not know ends the script with a sentence instead of a stack trace.
import { parseArgs } from 'node:util'

/**
 * @template {import('node:util').ParseArgsConfig} Config
 * @param {string} usage the whole command as one would type it: `npm start -- [--fresh]`
 * @param {Config} config
 */
export function readOptions(usage, config) {
  try {
    return parseArgs(config)
  } catch (error) {
    console.error(`bullpen: ${error.message.split('. ')[0]}. Usage: ${usage}`)
    return process.exit(1)
  }
}
