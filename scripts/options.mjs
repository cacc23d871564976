// Reads a script's command line; what it does not know ends the script with a sentence instead of a stack trace.
import { parseArgs } from 'node:util'
import { explainAndExit, UserError } from './user-error.mjs'

/**
 * @template {import('node:util').ParseArgsConfig} Config
 * @param {string} usage the whole command as one would type it: `npm start -- [--fresh]`
 * @param {Config} config
 */
export function readOptions(usage, config) {
  try {
    return parseArgs(config)
  } catch (error) {
    return explainAndExit(new UserError(`${error.message.split('. ')[0]}. Usage: ${usage}`))
  }
}
