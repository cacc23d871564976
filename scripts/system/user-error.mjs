/** An error that the user can act on: its message says everything, and a stack trace would only hide it. */
export class UserError extends Error {}

/** What to print for an error: the message of a UserError, the stack of any other. */
export const explain = (error) => (error instanceof UserError ? `bullpen: ${error.message}` : error)

/** Ends a script that has nothing to clean up. */
export function explainAndExit(error) {
  console.error(explain(error))
  return process.exit(1)
}
