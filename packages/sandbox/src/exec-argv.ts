// Builds a child process's Node flags from the worker's own flags and the memory limit.

/**
 * Matches the flags that apply only to the worker, such as a debugger's port, the worker's own heap size, or code on the command
 * line.
 */
const NOT_INHERITED =
  /^--(inspect|debug|max[-_]old[-_]space[-_]size|watch|test|eval|print|input-type|check|interactive)/
const TAKES_CODE = ['-e', '-p', '-pe', '--eval', '--print']

export function childExecArgv(parents: readonly string[], memoryLimitBytes: number | undefined): string[] {
  const inherited = parents.filter(
    (flag, at) =>
      !NOT_INHERITED.test(flag) && !TAKES_CODE.includes(flag) && !TAKES_CODE.includes(parents[at - 1] ?? ''),
  )
  if (memoryLimitBytes === undefined) return inherited
  return [...inherited, `--max-old-space-size=${Math.floor(memoryLimitBytes / 2 ** 20)}`]
}
