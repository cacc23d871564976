// Determines how this machine's package manager installs a product.

/** @typedef {'redis' | 'prometheus' | 'chromium' | 'python'} Product */

/**
 * The package managers, in the order in which they are searched for. `packages` are tried in turn, because names differ by
 * release.
 */
const MANAGERS = [
  {
    program: 'apt-get',
    refresh: ['update', '-q'],
    install: ['install', '-y', '-q'],
    packages: {
      redis: ['redis-server'],
      prometheus: ['prometheus'],
      chromium: ['chromium'],
      python: ['python3'],
    },
  },
  {
    program: 'dnf',
    install: ['install', '-y'],
    packages: {
      redis: ['redis', 'valkey'],
      prometheus: ['golang-github-prometheus'],
      chromium: ['chromium'],
      python: ['python3'],
    },
  },
  {
    program: 'apk',
    install: ['add', '--no-cache'],
    packages: {
      redis: ['redis', 'valkey'],
      prometheus: ['prometheus'],
      chromium: ['chromium'],
      python: ['python3'],
    },
  },
  {
    program: 'pacman',
    install: ['-Sy', '--noconfirm'],
    packages: {
      redis: ['valkey', 'redis'],
      prometheus: ['prometheus'],
      chromium: ['chromium'],
      python: ['python'],
    },
  },
  {
    program: 'brew',
    install: ['install'],
    packages: { redis: ['redis'], prometheus: ['prometheus'], chromium: ['chromium'], python: ['python3'] },
    asUser: true,
  },
]

/**
 * Returns this machine's package manager and its commands for installing a product, with sudo where needed. Returns undefined if
 * there is none.
 * @param {{ find: (program: string) => string | undefined, isRoot: boolean, product: Product }} world
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
