// The user's consent to an installation, where a script does not accept flags: in tests, benchmarks and CI.

/**
 * Returns whether a variable such as INSTALL_REDIS is set to something other than 0.
 * @param {string} variable
 * @param {NodeJS.ProcessEnv} [env]
 */
export function hasConsent(variable, env = process.env) {
  return !['', '0', undefined].includes(env[variable])
}
