// Determines how this machine's package manager installs Redis or Prometheus.

/**
 * The package managers, in the order in which they are searched for. `packages` are tried in turn, because names differ by
 * release.
 */
const MANAGERS = [
  {
    program: 'apt-get',
    refresh: ['update', '-q'],
    install: ['install', '-y', '-q'],
    packages: { redis: ['redis-server'], prometheus: ['prometheus'] },
  },
  {
    program: 'dnf',
    install: ['install', '-y'],
    packages: { redis: ['redis', 'valkey'], prometheus: ['golang-github-prometheus'] },
  },
  {
    program: 'apk',
    install: ['add', '--no-cache'],
    packages: { redis: ['redis', 'valkey'], prometheus: ['prometheus'] },
  },
  {
    program: 'pacman',
    install: ['-Sy', '--noconfirm'],
    packages: { redis: ['valkey', 'redis'], prometheus: ['prometheus'] },
  },
  { program: 'brew', install: ['install'], packages: { redis: ['redis'], prometheus: ['prometheus'] }, asUser: true },
]

/**
 * Returns this machine's package manager and its commands for installing a product, with sudo where needed. Returns undefined if
 * there is none.
 * @param {{ find: (program: string) => string | undefined, isRoot: boolean, product: 'redis' | 'prometheus' }} world
 */
export function findPackageManager({ find, isRoot, product }) {
  const manager = MANAGERS.find(({ program }) => find(program) !== undefined)
  if (manager === undefined) return undefined
  const { program, refresh, install, asUser = false } = manager
  const packages = manager.packages[product]
  const command = (args) => [...(isRoot || asUser ? [] : ['sudo']), program, ...args]
  return {
    program,
    refresh: refresh && command(refresh),
    installs: packages.map((name) => command([...install, name])),
    /** The command that the user would type. */
    line: command([...install.filter((flag) => flag !== '-q'), packages[0]]).join(' '),
  }
}
