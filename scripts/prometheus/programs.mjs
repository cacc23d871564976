// Finds Prometheus and promtool, or downloads them if the user has agreed. Redis is required, but Prometheus is only needed by tests
// and by `npm start -- --observe`.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { hasConsent } from '../system/consent.mjs'
import { findPackageManager } from '../system/package-manager.mjs'
import { findProgram, run } from '../system/programs.mjs'
import { UserError } from '../system/user-error.mjs'

/** @typedef {{ prometheus: string, promtool: string }} Programs the full paths of both */

/** Everything outside this module that is used. Tests replace it. `mayInstall` means that the user agreed to an installation. */
const machine = {
  env: process.env,
  mayInstall: hasConsent('INSTALL_PROMETHEUS'),
  /** Where a downloaded package is unpacked. */
  dir: resolve(import.meta.dirname, '../../node_modules/.cache/prometheus'),
  say: (line) => console.error(line),
  isRoot: process.getuid?.() === 0,
  find: findProgram,
  isFile: existsSync,
  run: (command, args, options) => run(command, args, { stdio: ['ignore', 2, 2], ...options }),
  unpack,
}

/**
 * Returns the programs on PATH or, if there are none, those that were downloaded earlier. Downloads them if the user has agreed.
 * @param {Partial<typeof machine>} [options]
 * @returns {Promise<Programs>}
 * @throws UserError that says what to install
 */
export async function resolvePrometheus(options = {}) {
  const world = { ...machine, ...options }
  const found = findBoth(world)
  if (found !== undefined) return found
  const { env, isRoot, mayInstall } = world
  const manager = findPackageManager({ find: (program) => world.find(program, env), isRoot, product: 'prometheus' })
  if (mayInstall && manager !== undefined) {
    await install(manager, world)
    const installed = findBoth(world)
    if (installed !== undefined) return installed
    world.say(`${manager.program} did not provide a working Prometheus.`)
  }
  throw nothingFound(manager)
}

function findBoth({ env, dir, find, isFile }) {
  const onPath = { prometheus: find('prometheus', env), promtool: find('promtool', env) }
  if (onPath.prometheus !== undefined && onPath.promtool !== undefined) return onPath
  const unpacked = { prometheus: join(dir, 'usr/bin/prometheus'), promtool: join(dir, 'usr/bin/promtool') }
  return Object.values(unpacked).every(isFile) ? unpacked : undefined
}

/**
 * Debian's package would start a system service that runs forever, so its programs are unpacked into `dir` instead of installed.
 * Other package managers do not start what they install.
 */
async function install(manager, { dir, run: execute, say, unpack: unpackInto }) {
  if (manager.refresh) await execute(manager.refresh[0], manager.refresh.slice(1))
  if (manager.program === 'apt-get') {
    say(`Downloading Prometheus with apt-get into ${dir}.`)
    await unpackInto(dir, execute)
    return
  }
  say(`Installing Prometheus with \`${manager.line}\`.`)
  for (const [command, ...args] of manager.installs) if ((await execute(command, args)).code === 0) return
}

/** Downloads Debian's package and unpacks it. `dir` appears only once it is complete, because several processes may do this at once. */
async function unpack(dir, execute) {
  mkdirSync(dirname(dir), { recursive: true })
  const temporary = mkdtempSync(`${dir}-`)
  try {
    if ((await execute('apt-get', ['download', '-q', 'prometheus'], { cwd: temporary })).code !== 0) return
    const file = readdirSync(temporary).find((name) => name.endsWith('.deb'))
    const { code } = await execute('dpkg-deb', ['--extract', join(temporary, file ?? ''), join(temporary, 'unpacked')])
    if (code !== 0) return
    rmSync(dir, { recursive: true, force: true })
    renameSync(join(temporary, 'unpacked'), dir)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

function nothingFound(manager) {
  const lines =
    manager === undefined
      ? ['  install Prometheus']
      : [
          `  install Prometheus:             ${manager.line}`,
          '  let this script download it:    set INSTALL_PROMETHEUS=1',
        ]
  return new UserError(
    ['Prometheus is needed, but prometheus and promtool are not both on PATH. Do one of these:', ...lines].join('\n'),
  )
}
