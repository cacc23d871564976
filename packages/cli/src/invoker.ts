// Determines the name that the audit log and cancelled tasks record for the user of the CLI.
import { userInfo } from 'node:os'
import { plain } from './output/format.ts'

/** The longest name that the API accepts. */
const MAX_LENGTH = 100

/** Returns the name from --by, from $BULLPEN_BY or from the operating system, in that order, or undefined if there is none. */
export function invokerName(by: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const name = plain(by || env['BULLPEN_BY'] || userName())
    .slice(0, MAX_LENGTH)
    .toWellFormed()
  return name === '' ? undefined : name
}

/** Returns an empty string if the user has no name, as in many containers. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return ''
  }
}
