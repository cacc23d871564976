// Who asks, for the audit of commands: $BULLPEN_BY, or the user that the system knows.
import { userInfo } from 'node:os'
import { plain } from './output/format.ts'

/** What the API takes. */
const LONGEST = 100

export function authorIn(env: NodeJS.ProcessEnv): string | undefined {
  const name = plain(env['BULLPEN_BY'] || userName(), LONGEST)
  return name === '' ? undefined : name
}

/** Containers often run as a user that has no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return ''
  }
}
