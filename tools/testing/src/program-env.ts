// The environment of a program that a test starts.

/**
 * Returns the variables `env`, PATH, and the directory of the compile cache, which saves a program a quarter of the processor time
 * of its start. The program does not get any other variable of the test's own process.
 */
export function programEnv(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, NODE_COMPILE_CACHE, ...env }
}
