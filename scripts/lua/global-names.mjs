// Finds the global names in a Lua script that Redis does not define. In Redis, such a name is an error only when its line runs.
import luaparse from 'luaparse'
import { UserError } from '../system/user-error.mjs'

/** What Redis gives a script. */
const DEFINED = [
  ...['redis', 'cjson', 'cmsgpack', 'bit', 'struct', 'KEYS', 'ARGV'],
  ...['string', 'table', 'math', 'assert', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'select'],
  ...['tonumber', 'tostring', 'type', 'unpack'],
]

/**
 * @param {string} name the script's name
 * @param {string} text a whole script
 * @throws {UserError} if the text is not Lua 5.1, or uses another global name
 */
export function expectKnownNames(name, text) {
  const [, ...lines] = text.split('\n')
  const unknown = new Map()
  try {
    const tree = luaparse.parse(lines.join('\n'), { luaVersion: '5.1', scope: true, locations: true })
    for (const { name: used, loc } of tree.globals) if (!DEFINED.includes(used)) unknown.set(used, loc?.start.line)
  } catch (error) {
    throw new UserError(`${name}: ${error.message} (of the whole script: npm run lua -- show ${name})`)
  }
  for (const [used, line] of unknown)
    throw new UserError(`${name}: line ${line + 1} of the whole script uses an unknown name: ${used}`)
}
