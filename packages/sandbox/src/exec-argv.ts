// The flags of Node that a child process is started with: the parent's own, and its memory limit.

/** Flags that mean the parent alone: a debugger's port, its own heap, code given on the command line. */
const PARENTS_OWN = /^--(inspect|debug|max[-_]old[-_]space[-_]size|watch|test|eval|print|input-type|check|interactive)/
const TAKES_CODE = ['-e', '-p', '-pe', '--eval', '--print']

export function childExecArgv(parents: readonly string[], memoryLimitBytes: number | undefined): string[] {
  const inherited = parents.filter(
    (flag, at) => !PARENTS_OWN.test(flag) && !TAKES_CODE.includes(flag) && !TAKES_CODE.includes(parents[at - 1] ?? ''),
  )
  if (memoryLimitBytes === undefined) return inherited
  return [...inherited, `--max-old-space-size=${Math.floor(memoryLimitBytes / 2 ** 20)}`]
}
