// Completes package-lock.json for platforms other than the one that wrote it, and removes download addresses.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { helpOn } from './system/options.mjs'

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32', 'aix']
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']
/** Parts of package names that npm spells differently in its fields. */
const SPELLINGS = { windows: 'win32', 64: 'x64', armhf: 'arm', aarch64: 'arm64' }

/**
 * Returns the platform that a package's name stands for: linux, arm64 and musl for `@rolldown/binding-linux-arm64-musl`.
 * @param {string} name
 * @returns {{ os?: string[], cpu?: string[], libc?: string[] }}
 */
export function platformOf(name) {
  const words = name
    .split('/')
    .at(-1)
    .split('-')
    .map((word) => SPELLINGS[word] ?? word)
  const os = words.filter((word) => SYSTEMS.includes(word))
  const cpu = words.filter((word) => PROCESSORS.includes(word))
  const libc = words.flatMap((word) => (/^musl/.test(word) ? ['musl'] : /^gnu/.test(word) ? ['glibc'] : []))
  const known = { os, cpu, libc: os.includes('linux') ? libc : [] }
  return Object.fromEntries(Object.entries(known).filter(([, values]) => values.length > 0))
}

/** Returns whether Node finds `name` from the package at `path`, either in that package's node_modules or in one above it. */
function isLocked(packages, path, name) {
  for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
    if (packages[`${at}/node_modules/${name}`] !== undefined) return true
  }
  return packages[`node_modules/${name}`] !== undefined
}

/**
 * Returns the optional packages that the lock file names but does not have an entry for.
 * @param {{ packages: Record<string, any> }} lock
 */
export function missingOptionals({ packages }) {
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => !isLocked(packages, path, name))
      .map(([name, version]) => ({ name, version, by: path })),
  )
}

/** Returns the entries with a download address. The `resolved` field of a link is a folder in this repository. */
export const downloadAddresses = ({ packages }) =>
  Object.entries(packages)
    .filter(([, entry]) => entry.resolved !== undefined && !entry.link)
    .map(([path]) => path)

/**
 * Returns the completed lock. Its entries are sorted the way npm sorts them, and nothing else is changed.
 * @template {{ packages: Record<string, any> }} Lock
 * @param {Lock} lock
 * @returns {Lock}
 */
export function completed(lock) {
  const packages = structuredClone(lock.packages)
  for (const path of downloadAddresses(lock)) delete packages[path].resolved
  for (const { name, version, by } of missingOptionals(lock)) {
    if (!/^\d/.test(version)) throw new Error(`${by} depends on ${name} ${version}; expected an exact version`)
    const { dev, engines } = packages[by]
    const { os, cpu, libc } = platformOf(name)
    const known = { version, cpu, dev, libc, optional: true, os, engines } // JSON omits undefined
    packages[`node_modules/${name}`] = known
  }
  const order = ([a], [b]) => a.localeCompare(b, 'en')
  return { ...lock, packages: Object.fromEntries(Object.entries(packages).sort(order)) }
}

/** Completes the file, or with --check only reports what is missing from it. */
function main(args) {
  helpOn(
    'npm run lock -- [--check]\n\nCompletes package-lock.json for all platforms. With --check, reports what is missing from the file without changing it.',
    args,
  )
  const file = join(import.meta.dirname, '../package-lock.json')
  const lock = JSON.parse(readFileSync(file, 'utf8'))
  const missing = missingOptionals(lock)
  const addresses = downloadAddresses(lock)
  if (!args.includes('--check')) {
    writeFileSync(file, `${JSON.stringify(completed(lock), null, 2)}\n`)
    console.log(`package-lock.json: ${missing.length} entries added, ${addresses.length} download addresses removed`)
    return 0
  }
  for (const { name, version, by } of missing) console.error(`missing: ${name}@${version}, optional for ${by}`)
  for (const path of addresses) console.error(`download address: ${path}`)
  const complete = missing.length + addresses.length === 0
  console.log(complete ? 'package-lock.json is complete' : 'package-lock.json is incomplete; run: npm run lock')
  return complete ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) process.exit(main(process.argv.slice(2)))
