/**
 * An error that the user can act on. Its message contains everything that the user needs, and a stack trace would only hide it.
 */
export class UserError extends Error {
  name = 'UserError'
}

/** Returns what to print for an error: a UserError's message, or any other error's stack. */
export const explain = (error) => (error instanceof UserError ? `bullpen: ${error.message}` : error)

/** Prints an error and ends a script that has nothing to clean up. */
export function explainAndExit(error) {
  console.error(explain(error))
  return process.exit(1)
}
