// The name under which the audit log and cancelled tasks record who asked.
import { userInfo } from 'node:os'
import { plain } from './output/format.ts'

/** The longest name that the API accepts. */
const MAX_LENGTH = 100

/** --by, then $BULLPEN_BY, then the user's name; undefined when there is none. */
export function invokerName(by: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const name = plain(by || env['BULLPEN_BY'] || userName(), MAX_LENGTH)
  return name === '' ? undefined : name
}

/** Empty where the user has no name, as in many containers. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return ''
  }
}
