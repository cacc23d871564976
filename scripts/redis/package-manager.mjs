// Determines how this machine's package manager installs Redis.

/**
 * The package managers, in the order in which they are searched for. `packages` are tried in turn, because names differ by
 * release.
 */
const MANAGERS = [
  { program: 'apt-get', refresh: ['update', '-q'], install: ['install', '-y', '-q'], packages: ['redis-server'] },
  { program: 'dnf', install: ['install', '-y'], packages: ['redis', 'valkey'] },
  { program: 'apk', install: ['add', '--no-cache'], packages: ['redis', 'valkey'] },
  { program: 'pacman', install: ['-Sy', '--noconfirm'], packages: ['valkey', 'redis'] },
  { program: 'brew', install: ['install'], packages: ['redis'], asUser: true },
]

/**
 * Returns this machine's package manager and its commands for installing Redis, with sudo where needed. Returns undefined if
 * there is none.
 * @param {{ find: (program: string) => string | undefined, isRoot: boolean }} world
 */
export function findPackageManager({ find, isRoot }) {
  const manager = MANAGERS.find(({ program }) => find(program) !== undefined)
  if (manager === undefined) return undefined
  const { program, refresh, install, packages, asUser = false } = manager
  const command = (args) => [...(isRoot || asUser ? [] : ['sudo']), program, ...args]
  return {
    program,
    refresh: refresh && command(refresh),
    installs: packages.map((name) => command([...install, name])),
    /** The command that the user would type. */
    line: command([...install.filter((flag) => flag !== '-q'), packages[0]]).join(' '),
  }
}
