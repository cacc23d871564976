// Finds a program that only tests need. If it is missing, the test fails with a message that says what to install.

/** The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve. */
const script = new URL('../../../scripts/testing/required-programs.mjs', import.meta.url).href

export async function requiredProgram(name: 'chromium' | 'python'): Promise<string> {
  const { resolveProgram } = (await import(script)) as { resolveProgram(program: string): Promise<string> }
  return resolveProgram(name)
}
