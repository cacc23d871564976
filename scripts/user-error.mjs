// An error that the user can do something about: its message is the whole story, and a stack trace would hide it.
export class UserError extends Error {}

/** What to print for any error. */
export const explain = (error) => (error instanceof UserError ? `bullpen: ${error.message}` : error)

/** For a script without anything to clean up. */
export function explainAndExit(error) {
  console.error(explain(error))
  return process.exit(1)
}
